package planner

import (
	"path"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"sbx.example/sbx/broker/internal/guard"
	"sbx.example/sbx/broker/internal/host"
	"sbx.example/sbx/broker/plan"
)

// maxConfigs bounds the configurations that are read for one tree. Repositories in it are looked for as far as secrets.
const maxConfigs = 256

// MaxConfigSize bounds what is read of one.
const MaxConfigSize = 1 << 20

// ReferredIn are rules about what Refer has found below a directory.
func (in *Input) ReferredIn(dir string) (out []guard.Rule) {
	for i := range in.Referred {
		if rule, ok := in.Referred[i].RuleIn(dir); ok {
			out = append(out, rule)
		}
	}
	return out
}

// Refer finds what the person's own settings, and those of the repositories in the writable trees, refer to in these
// trees: it is guarded like what it serves. So is what runs by itself in a home. Env is the environment of programs
// outside. It is a *Refusal if a setting cannot be read that somebody inside could make readable.
func (in *Input) Refer(env []string) error {
	in.Outside = env
	configs := in.topConfigs()
	in.atHome(env)
	at, err := guard.Anywhere()
	if err != nil { // the gate cannot judge by these rules either, and says so
		return nil
	}
	for _, top := range in.trees(Write) {
		r := in.referrer(top, at)
		repositories, all := r.repositories(Write)
		for _, dir := range repositories {
			r.repository(dir)
		}
		r.above()
		r.otherNames()
		why := "the tree is too large to be searched for repositories"
		if all {
			why = "its repositories have more configurations than are read"
		}
		if !all || r.left < 0 {
			in.Losses = append(in.Losses, Loss{What: "settings of repositories deep in " + plan.Bytes(top).Quote(),
				Why: why + ", so what their own settings make git run is not guarded, nor are other names (hard links) of what is",
				Fix: "work in a directory below it"})
		}
		configs = append(configs, r.configs...)
	}
	in.mask(append(configs, in.nestedConfigs(at)...))
	for _, p := range in.Unread {
		in.Referred = append(in.Referred, guard.Referred{Path: p, Why: "what is in it could not be looked at"})
	}
	if in.refused != nil {
		return in.refused
	}
	return nil
}

// repositories are the directories of a tree that are, or may be, the tops of work trees or bare repositories; the
// tree's own first. It says whether all of the tree was looked through, but for what packages and tools put there
// (guard.Dependency, Disposable). What is guarded in these directories and has another name is noted.
func (r *referrer) repositories(mode Mode) (out []string, all bool) {
	type dir struct {
		path string
		at   *guard.Place
	}
	left := r.in.budget(r.top, mode)
	for queue := []dir{{r.top, r.at}}; len(queue) > 0; queue = queue[1:] {
		d := queue[0]
		list, err := r.in.list(d.path)
		if left -= listCost + len(list); left < 0 {
			return append(out, d.path), false
		}
		if err != nil {
			r.in.leaveOut(d.path, err)
			continue
		}
		if d.path == r.top || host.Lists(list, ".git") || host.Lists(list, "HEAD") {
			out = append(out, d.path)
		}
		r.guarded(d.path, list, d.at)
		for _, e := range list {
			if e.Type != host.Dir || e.Name == ".git" || guard.Dependency(e.Name) || guard.Disposable(e.Name) {
				continue
			}
			next := dir{path.Join(d.path, e.Name), d.at}
			if v := d.at.Rule(e.Name, guard.ByHost); v.Action != guard.Free || v.Anchored { // else it is quicker to stay
				next.at = d.at.Below(e.Name)
			}
			queue = append(queue, next)
		}
	}
	return out, true
}

// trees are the directories that grants show in one of these modes, those of tools and of the session's left out.
func (in *Input) trees(modes ...Mode) []string {
	var out []string
	for i := range in.Grants {
		g := &in.Grants[i]
		if !slices.Contains(modes, g.Mode) || !g.guardable() {
			continue
		}
		if _, err := in.checkPlace(g); err != nil { // it will be refused
			continue
		}
		if canon, _, st, err := host.Resolve(in.FS, g.Path); err == nil && st.Type == host.Dir {
			out = append(out, canon)
		}
	}
	return out
}

// guardable says whether a writable grant shows a person's own directory, rather than a place of tools or of the
// session's.
func (g *Grant) guardable() bool {
	return !g.Socket && !g.Own && g.Source == "" && g.Why != CacheWhy
}

type referrer struct {
	in        *Input
	top       string
	at        *guard.Place // that every directory that a person works in is
	left      int
	submods   int                   // directories that may be a submodule's and were looked at
	modulesOf map[string][]string   // what submodules has found
	read      map[[2]string]bool    // configurations, each with its work tree; directories of repositories
	configs   []string              // of repositories
	linked    map[host.Inode]string // what is guarded, or git runs, and has other names
}

func (in *Input) referrer(top string, at *guard.Place) *referrer {
	return &referrer{in: in, top: top, at: at, left: maxConfigs, modulesOf: map[string][]string{},
		read: map[[2]string]bool{}, linked: map[host.Inode]string{}}
}

// repository reads the settings of what is at dir, and those for all repositories, whose relative paths git takes from
// there.
func (r *referrer) repository(dir string) {
	left, lookup := r.left, func(name string) string { return host.Lookup(r.in.Outside, name) }
	r.refers(guard.InEnvironment(lookup, dir, r.in.Facts.Home), dir)
	if dir != r.top { // those have been read
		r.left = left
	}
	own := r.gitDir(dir)
	_, err := r.in.FS.Lstat(own + "/HEAD")
	if r.in.unreadable(own, err); err == nil {
		r.settings(own, dir)
	}
}

// above reads the settings of the repository whose work tree the tree lies in.
func (r *referrer) above() {
	shown := r.configs
	for dir := path.Dir(r.top); dir != "/" && dir != "."; dir = path.Dir(dir) {
		if _, err := r.in.FS.Lstat(dir + "/.git"); err == nil {
			r.repository(dir)
			if list, err := r.in.FS.ReadDir(dir); err == nil {
				r.guarded(dir, list, r.at)
			}
			break
		}
	}
	r.configs = shown
}

// gitDir is the directory of the repository whose work tree dir is, or that dir is itself.
func (r *referrer) gitDir(dir string) string {
	git := dir + "/.git"
	st, err := r.in.FS.Lstat(git)
	switch {
	case err != nil:
		return dir
	case st.Type == host.File:
		if text, ok := r.in.setting(git); ok {
			if to := guard.LinkedDir(dir, text); to != "" {
				return to
			}
		}
	}
	return git
}

// settings reads those of the repository at own for the work tree at dir.
func (r *referrer) settings(own, dir string) {
	configs := r.configsOf(own)
	r.configs = append(r.configs, configs...)
	r.config(configs[0], dir)
	r.config(configs[1], dir)
	for _, c := range configs {
		git, _, _, err := host.Resolve(r.in.FS, path.Dir(c)) // not by a link that leads to it
		if err != nil || r.read[[2]string{git}] {
			continue
		}
		r.read[[2]string{git}] = true
		if text, ok := r.worktree(git); ok {
			r.config(git+"/config.worktree", path.Dir(from(git, strings.TrimRight(string(text), "\n"))))
		}
		r.hooks(git + "/hooks")
		r.inGit(git)
	}
}

// worktree reads where the work tree is whose own directory git is, if it is a worktree's.
func (r *referrer) worktree(git string) (text []byte, ok bool) {
	if path.Base(path.Dir(git)) != "worktrees" {
		return nil, false
	}
	return r.in.setting(git + "/gitdir")
}

// inGit adds what names that git acts upon in a repository's directory lead to, and notes those that have other names.
func (r *referrer) inGit(git string) {
	for _, n := range guard.InGit() {
		if p := path.Join(git, n.Pattern); host.ByLink(r.in.FS, git, n.Pattern) {
			r.add(p, leadsThere(path.Base(p), n.Why), true, true)
		}
	}
	for _, sub := range [...]string{"", "info", "objects/info", "remotes", "branches", "rebase-merge", "rebase-apply"} {
		dir := path.Join(git, sub)
		list := r.list(dir)
		if !slices.ContainsFunc(list, func(e host.Entry) bool {
			return e.Type == host.File && r.hasOthers(path.Join(dir, e.Name))
		}) {
			continue // nearly always, and what holds there takes a millisecond
		}
		at := r.at
		for name := range strings.SplitSeq(path.Join(".git", sub), "/") {
			at = at.Below(name)
		}
		r.guarded(dir, list, at)
	}
}

// leadsThere says why what a link leads to is guarded.
func leadsThere(name, why string) string { return plan.Bytes(name).Quote() + " leads there: " + why }

// configsOf are the configurations of the repository at own and of its submodules and worktrees, that of a repository
// whose worktree it is first.
func (r *referrer) configsOf(own string) []string {
	common := own
	if text, ok := r.in.setting(own + "/commondir"); ok {
		common = from(own, strings.TrimRight(string(text), "\n"))
	}
	out := append([]string{common + "/config", own + "/config.worktree"}, r.submodules(own)...)
	for _, tree := range r.list(common + "/worktrees") {
		at := path.Join(common, "worktrees", tree.Name)
		out = append(append(out, at+"/config.worktree"), r.submodules(at)...)
	}
	return out
}

// submodules are the configurations of the submodules that the repository at own, or a worktree's, has. Each is looked
// at once: a repository has them all, and so has each of its worktrees.
func (r *referrer) submodules(own string) []string {
	sub, known := r.modulesOf[own]
	if known {
		return sub
	}
	sub, all := r.modules(own+"/modules", maxModules)
	if !all { // none of them exists inside
		r.in.leaveOut(own+"/modules", unix.E2BIG)
	}
	r.modulesOf[own] = sub
	return sub
}

// ConfigsOf are the configurations of the repository at own, and of its submodules and worktrees.
func (in *Input) ConfigsOf(own string) []string { return in.referrer("", nil).configsOf(own) }

// guarded adds what the links of a directory lead to that may not be changed there, where at holds, and notes which of
// its files could be written by another name that they have: a session may make one in a repository of its own, and the
// next one write by it.
func (r *referrer) guarded(dir string, list []host.Entry, at *guard.Place) {
	for _, e := range list {
		if e.Type == host.Dir || guard.Dependency(e.Name) || guard.Disposable(e.Name) { // a worktree links node_modules
			continue
		}
		p, v := path.Join(dir, e.Name), at.Rule(e.Name, guard.ByHost)
		acts := v.Action == guard.Guard || v.Action == guard.Check || v.Action == guard.Index
		switch {
		case e.Type == host.Link && acts: // a repository's own directory is looked into instead
			r.add(p, leadsThere(e.Name, v.Why), true, true)
		case e.Type == host.File && (acts || v.Action == guard.Text):
			r.link(p)
		}
	}
}

// link notes a file if it has other names.
func (r *referrer) link(file string) {
	if !r.hasOthers(file) {
		return
	}
	st, _ := r.in.FS.Lstat(file)
	r.linked[st.Inode()] = file
}

// hasOthers says whether a file has other names.
func (r *referrer) hasOthers(file string) bool {
	st, err := r.in.FS.Lstat(file)
	return err == nil && st.Nlink > 1
}

// hooks adds what the links in a directory of hooks lead to, and notes hooks that have other names.
func (r *referrer) hooks(dir string) {
	for _, e := range r.list(dir) {
		switch p := path.Join(dir, e.Name); {
		case e.Type == host.Link:
			r.add(p, "git runs it: a hook leads there", true, true)
		case e.Type == host.File && !strings.HasSuffix(e.Name, ".sample"):
			r.link(p)
		}
	}
}

// otherNames adds those in the tree (hard links). Nearly always there are none.
func (r *referrer) otherNames() {
	left := maxScan
	for queue := []string{r.top}; len(r.linked) > 0 && len(queue) > 0 && left > 0; queue = queue[1:] {
		list, err := r.in.list(queue[0])
		r.in.leaveOut(queue[0], err)
		left -= len(list)
		for _, e := range list {
			p := path.Join(queue[0], e.Name)
			if e.Type == host.Dir {
				queue = append(queue, p)
			}
			if e.Type != host.File {
				continue
			}
			st, err := r.in.FS.Lstat(p)
			if file := r.linked[st.Inode()]; err == nil && file != "" && file != p {
				r.add(p, "it is another name (hard link) of "+plan.Bytes(file).Quote(), true, true)
			}
		}
	}
	if left <= 0 {
		r.in.Losses = append(r.in.Losses, Loss{
			What: "other names (hard links) of what is guarded in " + plan.Bytes(r.top).Quote(),
			Why:  "the tree is too large to be searched for them", Fix: "copy what is guarded: a copy has one name"})
	}
}

// list lists a directory that git acts upon.
func (r *referrer) list(dir string) []host.Entry {
	list, err := r.in.list(dir)
	r.in.unreadable(dir, err)
	return list
}

// config reads a configuration file, and those that it includes, of a repository whose work tree is at dir.
func (r *referrer) config(file, dir string) {
	key := [2]string{file, dir}
	if r.left < 0 || r.read[key] { // they may include each other
		return
	}
	r.read[key] = true
	canon, _, _, err := host.Resolve(r.in.FS, file)
	if err != nil {
		r.in.unreadable(file, err)
		return
	}
	text, ok := r.in.setting(canon)
	if !ok {
		return
	}
	if r.left--; r.left < 0 {
		return
	}
	r.refers(guard.References(text, path.Dir(file), dir, r.in.Facts.Home), dir)
}

// refers adds what settings for a work tree at dir refer to.
func (r *referrer) refers(list []guard.Reference, dir string) {
	for _, ref := range list {
		r.add(ref.Path, "git acts upon it: "+ref.Key, ref.Dir, ref.Dir || ref.Late)
		if ref.Config {
			r.config(ref.Path, dir)
		}
		if ref.Hooks {
			r.hooks(ref.Path)
		}
	}
}

// add keeps a place in the tree. Dir and late say whether it counts where it is a directory, or missing.
func (r *referrer) add(p, why string, dir, late bool) {
	canon, links, st, err := host.Resolve(r.in.FS, p)
	if host.NotExist(err) && !late || err == nil && st.Type != host.File && !dir {
		return
	}
	way := []string{p, canon}
	for _, l := range links {
		way = append(way, l.Path)
	}
	for _, at := range way {
		new := guard.Referred{Path: at, Why: why}
		if at != "" && at != r.top && host.Within(at, r.top) && !known(strings.TrimPrefix(at, r.top+"/")) &&
			!slices.Contains(r.in.Referred, new) {
			r.in.Referred = append(r.in.Referred, new)
		}
	}
}

// known says whether what a setting leads to in a tree is guarded by its name, or is needed as it is: a repository's
// directory.
func known(rel string) bool {
	v := guard.Look(rel)
	return v.Action != guard.Free || path.Base(rel) == ".git"
}

// from is what a path means that is taken from dir.
func from(dir, p string) string {
	if path.IsAbs(p) {
		return path.Clean(p)
	}
	return path.Join(dir, p)
}

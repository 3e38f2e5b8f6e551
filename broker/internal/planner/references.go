package planner

import (
	"path"

	"sbx/broker/internal/guard"
	"sbx/broker/internal/host"
	"sbx/shared/plan"
)

// Bounds of what is read of a person's own git configuration.
const (
	maxConfigs    = 32
	maxConfigSize = 1 << 20
)

// Referred is a file or directory in a writable tree that a setting or a link of the person's own makes programs outside act upon.
type Referred struct {
	Path string // canonical, or where a missing one would be
	Why  string
}

// Refer finds what the person's own settings, and those of the repositories at the tops of the writable trees, refer to in these trees: it
// is guarded like what it serves. Settings are the person's and the machine's configuration files.
func (in *Input) Refer(settings []string) {
	for _, top := range in.writableTrees() {
		r := referrer{in: in, top: top, left: maxConfigs}
		for _, file := range settings {
			r.add(file, "it is git's configuration for all repositories", true)
			r.config(file)
		}
		dir := top + "/.git"
		if st, err := in.FS.Lstat(dir); err == nil && st.Type != host.Dir && in.GitDir != "" {
			dir = in.GitDir
		}
		r.config(dir + "/config")
		r.config(dir + "/config.worktree")
		r.links(dir+"/hooks", func(string) string { return "git runs it: a hook leads there" })
		r.links(top, func(name string) string {
			if v := guard.Look(name); v.Action == guard.Guard {
				return plan.Bytes(name).Quote() + " leads there: " + v.Why
			}
			return ""
		})
	}
}

// writableTrees are the directories that grants show writable, caches left out.
func (in *Input) writableTrees() []string {
	var out []string
	for i := range in.Grants {
		g := &in.Grants[i]
		if g.Mode != Write || !g.guardable() {
			continue
		}
		if canon, _, st, err := host.Resolve(in.FS, g.Path); err == nil && st.Type == host.Dir {
			out = append(out, canon)
		}
	}
	return out
}

// guardable says whether a writable grant shows a person's own directory, rather than a place of tools or of the session's.
func (g *Grant) guardable() bool {
	return !g.Socket && !g.Own && g.Source == "" && g.Why != CacheWhy
}

type referrer struct {
	in   *Input
	top  string
	left int
}

// config reads a configuration file and those that it includes.
func (r *referrer) config(file string) {
	if r.left--; r.left < 0 {
		return
	}
	canon, _, _, err := host.Resolve(r.in.FS, file)
	if err != nil {
		return
	}
	text, err := r.in.FS.Peek(canon, 0, maxConfigSize)
	if err != nil {
		return
	}
	for _, ref := range guard.References(text, path.Dir(file), r.top, r.in.Facts.Home) {
		r.add(ref.Path, "git acts upon it: "+ref.Key, ref.Dir)
		if ref.Config {
			r.config(ref.Path)
		}
	}
}

// links adds what the links in a directory lead to, where why gives a reason.
func (r *referrer) links(dir string, why func(name string) string) {
	list, _ := r.in.FS.ReadDir(dir)
	for _, e := range list {
		if e.Type != host.Link {
			continue
		}
		if reason := why(e.Name); reason != "" {
			r.add(path.Join(dir, e.Name), reason, true)
		}
	}
}

// add keeps a place in the tree. Directories and missing ones count if the setting surely means them.
func (r *referrer) add(p, why string, surely bool) {
	canon, _, st, err := host.Resolve(r.in.FS, p)
	if err != nil && !host.NotExist(err) || !surely && (err != nil || st.Type != host.File) {
		return
	}
	for _, at := range [...]string{p, canon} {
		if at != "" && at != r.top && host.Within(at, r.top) && !host.Within(at, r.top+"/.git") {
			r.in.Referred = append(r.in.Referred, Referred{at, why})
		}
	}
}

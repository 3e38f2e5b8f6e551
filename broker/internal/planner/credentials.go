package planner

import (
	"path"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"sbx.example/sbx/broker/internal/guard"
	"sbx.example/sbx/broker/internal/host"
	"sbx.example/sbx/broker/plan"
)

// maxMasked bounds the configurations that are shown without their credentials, each by a mount of its own. What is
// beyond is not shown: a program could make as many itself, so that the next session has none left for a true one.
const maxMasked = 512

// maxIncluded bounds the configurations that are read because others include them.
const maxIncluded = 4096

// Masked is a repository's configuration that is shown without the credentials in it.
type Masked struct {
	Path string
	Text plan.Text // what is shown, under its name in the session's folder
	Loss Loss      // what is to be known about it
}

// topConfigs are the configurations of the repositories that are granted as a whole, in any mode.
func (in *Input) topConfigs() []string {
	out := in.trees(Read, Write, Overlay)
	for i := range out {
		out[i] += "/.git/config"
	}
	if in.GitDir != "" {
		out = append(out, in.GitDir+"/config")
	}
	return out
}

// nestedConfigs are the configurations of the repositories in the trees that are shown and not written in place.
func (in *Input) nestedConfigs(at *guard.Place) (out []string) {
	for _, t := range in.shownTrees() {
		if t.mode == Write {
			continue
		}
		r := in.referrer(t.root, at)
		repositories, all := r.repositories(t.mode)
		for _, dir := range repositories {
			out = append(out, r.configsOf(r.gitDir(dir))...)
		}
		if !all {
			in.Losses = append(in.Losses, Loss{What: "repositories deep in " + plan.Bytes(t.root).Quote(),
				Why: "the tree is too large to be searched for them, so passwords and tokens in their configurations are shown",
				Fix: "keep them in a credential helper, or grant a directory below it"})
		}
	}
	return out
}

// maxModules bounds how deep the directories of submodules are looked for: the name of one has the slashes of its path.
// maxSubmodules bounds how many are looked at in a tree. Programs inside can make such directories.
const (
	maxModules    = 8
	maxSubmodules = 4096
)

// modules are the configurations of the submodules below a directory, also of those that have no work tree now. If not
// all directories could be looked at, a credential may be in any.
func (r *referrer) modules(dir string, depth int) (out []string, all bool) {
	for _, e := range r.list(dir) {
		if e.Type != host.Dir {
			continue
		}
		if r.submods++; r.submods > maxSubmodules || depth == 0 {
			return out, false
		}
		at := path.Join(dir, e.Name)
		if _, err := r.in.FS.Lstat(at + "/HEAD"); err == nil {
			out = append(out, at+"/config")
			at += "/modules"
		}
		below, all := r.modules(at, depth-1)
		if out = append(out, below...); !all {
			return out, false
		}
	}
	return out, true
}

// mask finds the credentials in configurations. Git inside has to read the files, so they are shown without them;
// where that cannot be done, it is a loss.
func (in *Input) mask(configs []string) {
	slices.Sort(configs)
	shown := in.Shown()
	seen := map[[2]string]bool{}
	own := len(configs)
	for i := 0; i < min(len(configs), own+maxIncluded); i++ { // what one includes is another
		f, _, st, err := host.Resolve(in.FS, configs[i])
		// What it includes git looks for beside the name by which it reads it, which may be a link.
		beside, _, _, _ := host.Resolve(in.FS, path.Dir(configs[i]))
		if read := [2]string{f, beside}; err != nil || st.Type != host.File || seen[read] {
			in.unreadable(configs[i], err)
			continue
		}
		seen[[2]string{f, beside}] = true
		text, ok := in.setting(f)
		for _, ref := range guard.References(text, beside, beside, in.Facts.Home) {
			if ref.Config && shown(ref.Path) != "" {
				configs = append(configs, ref.Path)
			}
		}
		if slices.Contains(in.Configs, f) {
			continue
		}
		if in.Configs = append(in.Configs, f); !ok {
			continue
		}
		in.maskOne(f, text)
	}
	if len(configs) > own+maxIncluded {
		in.Losses = append(in.Losses, Loss{What: "what settings of repositories include",
			Why: "it is too much to be looked at, so passwords and tokens in it may be shown",
			Fix: "keep them in a credential helper"})
	}
}

// maskOne is mask for one configuration.
func (in *Input) maskOne(f string, text []byte) {
	found := guard.GitCredentials(text)
	if len(found) == 0 {
		return
	}
	var keys, fixes []string
	for _, c := range found {
		keys, fixes = append(keys, plan.Bytes(c.Key).Quote()), append(fixes, plan.Bytes(c.Command).Quote())
	}
	l := Loss{What: "credential in " + plan.Bytes(f).Quote(),
		Fix: "outside: " + strings.Join(fixes, ", ") + ", and let a credential helper keep it"}
	shown, ok := guard.WithoutCredentials(text)
	switch {
	case !ok:
		l.Why = strings.Join(keys, ", ") + " holds a password or token, and git inside has to read the file, so programs can"
		in.Losses = append(in.Losses, l)
	case len(in.Masked) == maxMasked:
		in.leaveOut(f, unix.E2BIG)
	default:
		l.Price, l.Why = true, strings.Join(keys, ", ")+
			" is shown without its password or token, and the file cannot be changed inside"
		as := plan.Text{Name: "gitconfig-" + strconv.Itoa(len(in.Masked)), Text: string(shown)}
		in.Masked = append(in.Masked, Masked{f, as, l})
	}
}

// maskCredentials mounts what is shown of configurations with credentials over them.
func (v *view) maskCredentials() {
	for _, m := range v.in.Masked {
		if !v.isShown(m.Path) {
			continue
		}
		if v.in.InPlace && !v.written(m.Path) { // there the broker opens no file for a program
			m.Loss.Price = false
			m.Loss.Why = "nothing is mounted, so the file is not shown at all, and git fails in that repository"
		}
		v.losses = append(v.losses, m.Loss)
		v.late = append(v.late, plan.Mount{Kind: plan.Bind, Target: m.Path, Access: plan.ReadOnly,
			Source: path.Join(v.in.SessionDir, "etc", m.Text.Name), Why: MaskedWhy})
	}
}

// written says whether a path lies in a tree that a grant lets be written.
func (v *view) written(p string) (out bool) {
	for _, t := range v.trees { // outermost first
		if host.Within(p, t.root) {
			out = t.mode == Write
		}
	}
	return out
}

// addCopies has the copies stand where their originals do. What is hidden around one stays so: checkSecrets refuses
// every grant there.
func (v *view) addCopies() {
	for _, c := range v.in.Copies {
		if c.Linked {
			n := v.root.at(c.Path)
			n.hidden, n.masked, n.link, n.text = true, true, copies+c.Text.Name, c.Text.Text
			n = v.root.at(n.link)
			n.file, n.why = c.File(v.in.SessionDir), MaskedWhy
			continue
		}
		if c.Over {
			if v.isShown(c.Path) {
				v.late = append(v.late, plan.Mount{Kind: plan.Bind, Target: c.Path, Access: plan.ReadOnly,
					Source: c.File(v.in.SessionDir), Why: certificatesWhy})
			}
			continue
		}
		if c.IsDecoy() {
			v.addDecoy(&c)
			continue
		}
		v.root.at(path.Dir(c.Path)).secret = false
		v.root.at(c.Path).file = c.File(v.in.SessionDir)
	}
}

// copies is where linked copies are inside.
const copies = "/run/sbx/"

// MaskedWhy is the reason of a mount that shows a configuration without its credentials.
const MaskedWhy = "credential"

// certificatesWhy is the reason of a mount that shows whom tools trust in this session.
const certificatesWhy = "certificates"

// isShown says whether the host's file at a path is shown: whether the innermost of what was granted and what is hidden
// around it was granted.
func (v *view) isShown(p string) bool {
	for at := p; at != "/"; at = path.Dir(at) {
		if n := v.root.find(at); n != nil && (n.hidden || n.granted) {
			st, err := v.in.FS.Lstat(p)
			return n.granted && !n.hidden && n.mode != Scratch && err == nil && st.Type == host.File
		}
	}
	return false
}

package input

import (
	"path"
	"slices"
	"strings"

	"sbx.example/sbx/broker/internal/host"
	"sbx.example/sbx/broker/internal/planner"
	"sbx.example/sbx/broker/internal/request"
)

// shells shows the files that a person's shells read when they start, or not, as was answered once, and gives what
// shells write a layer of the session's own: nothing of it reaches the host, and nobody is asked about each name.
func (r *Run) shells(s request.Settings, in *planner.Input) {
	home := in.Facts.Home
	if home == "" || s.Profile.Root() == "strict" {
		return
	}
	why := "fs.shell_files"
	add := func(p string, mode planner.Mode) {
		named := func(g planner.Grant) bool { return g.Path == p && (g.Explicit || g.Ruled) }
		if !slices.ContainsFunc(in.Grants, named) {
			in.Grants = append(in.Grants, planner.Grant{Path: p, Mode: mode, Optional: true, Why: why})
		}
	}
	stores := request.ShellStores()
	for _, f := range request.ShellStartup() {
		f, _ = strings.CutSuffix(f, "/")
		p := home + f[1:]
		switch {
		case slices.Contains(stores, f):
		case s.FS.ShellFiles == "show":
			add(p, planner.Read)
		case s.FS.ShellFiles == "hide" && !granted(in, p):
			in.Hides = append(in.Hides, planner.Hide{Path: p, Why: why})
		}
	}
	for _, f := range stores {
		p := home + f[1:]
		startup := slices.Contains(request.ShellStartup(), f+"/")
		_, err := in.FS.Lstat(p)
		switch {
		case err != nil && !r.runs(path.Base(p)): // nobody looks for it
		case err != nil:
			add(p, planner.Overlay)
		case startup && s.FS.ShellFiles == "ask": // it asks, name by name
		case startup && s.FS.ShellFiles == "hide":
			add(p, planner.Scratch)
		default:
			add(p, planner.Overlay)
		}
	}
}

// runs says whether the program is the shell that keeps its things in directories of that name.
func (r *Run) runs(name string) bool {
	if len(r.Argv) == 0 {
		return false
	}
	shell := path.Base(r.Argv[0])
	return shell == name || shell == "nu" && name == "nushell"
}

// granted says whether somebody has named a path, or one in it, to be shown.
func granted(in *planner.Input, p string) bool {
	return slices.ContainsFunc(in.Grants, func(g planner.Grant) bool {
		return (g.Explicit || g.Ruled) && (host.Within(g.Path, p) || host.Within(p, g.Path))
	})
}

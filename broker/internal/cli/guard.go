package cli

import (
	"path"
	"strings"

	"sbx/broker/internal/gate/gatefs"
	"sbx/broker/internal/guard"
	"sbx/broker/internal/planner"
	"sbx/shared/plan"
)

// serveGuard returns the function that serves the guarded directories of a plan.
func (t *term) serveGuard(in *planner.Input) func(*plan.Mount, int) error {
	return func(m *plan.Mount, fd int) error {
		tree := gatefs.Tree{Dirs: []gatefs.Dir{{Path: "/", Host: string(m.Source), Kind: gatefs.Guarded, Rules: guardRules(in, string(m.Target))}}}
		s, err := gatefs.New(fd, tree, gatefs.Options{
			Owner: gatefs.Owner{UID: in.Facts.UID, GID: in.Facts.GID},
			Check: func(_ string, old, next []byte) error { return guard.CheckGitConfig(old, next) },
		})
		if err != nil {
			return err
		}
		go s.Serve()
		return nil
	}
}

// guardRules are the rules of the guarded directory dir; the first that matches a name decides.
func guardRules(in *planner.Input, dir string) []gatefs.Rule {
	var out []gatefs.Rule
	below := func(p string) (string, bool) {
		rel, ok := strings.CutPrefix(path.Clean(p), dir+"/")
		return rel, ok
	}
	for _, h := range in.Hides {
		if rel, ok := below(h.Path); ok {
			out = append(out, gatefs.Rule{Pattern: rel, Action: gatefs.Hide})
		}
	}
	for _, g := range in.Grants {
		if rel, ok := below(g.Path); ok && g.Explicit && g.Mode == planner.Write {
			out = append(out, gatefs.Rule{Pattern: rel, Action: gatefs.Allow})
		}
	}
	hide, except := guard.Secrets()
	if dir == in.Project {
		for _, n := range guard.Project() {
			out = append(out, gatefs.Rule{Pattern: n.Path, Action: gatefs.Guard, Mkdir: n.Mkdir})
		}
	}
	for _, n := range except {
		out = append(out, gatefs.Rule{Pattern: "**/" + n, Action: gatefs.Allow})
	}
	for _, n := range hide {
		out = append(out, gatefs.Rule{Pattern: "**/" + n, Action: gatefs.Hide})
	}
	if dir != in.Project {
		return out
	}
	// git init puts these there, and nothing runs them
	out = append(out, gatefs.Rule{Pattern: ".git/hooks/*.sample", Action: gatefs.Allow})
	for _, n := range guard.GitConfigs() {
		out = append(out, gatefs.Rule{Pattern: ".git/" + n, Action: gatefs.Check})
	}
	for _, n := range guard.Git() {
		out = append(out, gatefs.Rule{Pattern: ".git/" + n.Path, Action: gatefs.Guard, Mkdir: n.Mkdir})
	}
	return out
}

package cli

import (
	"path"
	"strings"

	"sbx/broker/internal/gate/gatefs"
	"sbx/broker/internal/guard"
	"sbx/broker/internal/planner"
	"sbx/shared/plan"
	"sbx/shared/stage"
)

// serveGuard returns the function that serves the guarded directories of a plan.
func (t *term) serveGuard(in *planner.Input) func(*stage.Child, *plan.Mount, int) error {
	return func(c *stage.Child, m *plan.Mount, fd int) error {
		tree := gatefs.Tree{Dirs: []gatefs.Dir{{Path: "/", Host: string(m.Source), Kind: gatefs.Guarded, Rules: guardRules(in, m)}}}
		s, err := gatefs.New(fd, tree, gatefs.Options{
			Owner: gatefs.Owner{UID: in.Facts.UID, GID: in.Facts.GID},
			Check: func(_ string, old, next []byte) error { return guard.CheckGitConfig(old, next) },
		})
		if err != nil {
			return err
		}
		c.LookAfter(stage.Also{Fd: fd, Ready: s.Next, Leave: func() { go s.Serve() }})
		return nil
	}
}

// guardRules are the rules of a guarded directory; the first that matches a name decides. What the plan
// hides in it was resolved by the planner: links, other mounts and hard links of secrets included.
func guardRules(in *planner.Input, m *plan.Mount) []gatefs.Rule {
	dir := string(m.Target)
	var out []gatefs.Rule
	below := func(p string) (string, bool) {
		rel, ok := strings.CutPrefix(path.Clean(p), dir+"/")
		return globLiteral(rel), ok
	}
	for _, h := range m.Hide {
		out = append(out, gatefs.Rule{Pattern: globLiteral(string(h)), Action: gatefs.Hide})
	}
	for _, g := range in.Grants {
		if rel, ok := below(g.Path); ok && g.Explicit && g.Mode == planner.Write {
			out = append(out, gatefs.Rule{Pattern: rel, Action: gatefs.Allow})
		}
	}
	if dir == in.GitDir {
		return append(out, gitRules("")...)
	}
	if dir == in.Project {
		for _, n := range guard.Project() {
			out = append(out, gatefs.Rule{Pattern: n.Path, Action: gatefs.Guard, Mkdir: n.Mkdir})
		}
		out = append(out, gitRules(".git/")...)
	}
	for _, n := range guard.Packaged() { // certificates that packages and tests bring along
		out = append(out, gatefs.Rule{Pattern: "**/" + n + "/**/*.pem", Action: gatefs.Allow})
	}
	hide, except := guard.Secrets()
	for _, n := range except {
		out = append(out, gatefs.Rule{Pattern: "**/" + n, Action: gatefs.Allow})
	}
	for _, n := range hide {
		out = append(out, gatefs.Rule{Pattern: "**/" + n, Action: gatefs.Hide})
	}
	return out
}

// gitRules guard a repository that lies at prefix.
func gitRules(prefix string) []gatefs.Rule {
	// git init puts these there, and nothing runs them
	out := []gatefs.Rule{{Pattern: prefix + "hooks/*.sample", Action: gatefs.Allow}}
	for _, n := range guard.GitConfigs() {
		out = append(out, gatefs.Rule{Pattern: prefix + n, Action: gatefs.Check})
	}
	for _, n := range guard.Git() {
		out = append(out, gatefs.Rule{Pattern: prefix + n.Path, Action: gatefs.Guard, Mkdir: n.Mkdir})
	}
	return out
}

// globLiteral escapes what path.Match would take for a wildcard.
func globLiteral(s string) string {
	if !strings.ContainsAny(s, `\*?[`) {
		return s
	}
	return strings.NewReplacer(`\`, `\\`, "*", `\*`, "?", `\?`, "[", `\[`).Replace(s)
}

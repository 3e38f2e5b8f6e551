package cli

import (
	"errors"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"sbx/broker/internal/guard"
	"sbx/broker/internal/host"
	"sbx/broker/internal/planner"
	"sbx/broker/internal/policy"
	"sbx/broker/internal/quoting"
	"sbx/broker/internal/secrets"
)

// nameGate judges the names of secrets in what a session was not started with and an answer may show. What the plan shows was judged by the planner, or
// is judged by who serves it.
type nameGate struct {
	judge *secrets.Judge
	home  string
}

func newNameGate(in *planner.Input) *nameGate {
	return &nameGate{judge: secrets.New(host.FS{}, in.Own, in.GitDir), home: in.Facts.Home}
}

// systemTrees hold what came with the system: what is secret there is on the list, or no user can read it.
func systemTrees() []string {
	return []string{"bin", "boot", "dev", "etc", "lib", "lib32", "lib64", "libx32", "nix", "opt", "proc", "run", "sbin", "snap", "sys", "usr", "var"}
}

// top is the directory that names are judged relative to; "" where they are not.
func (g *nameGate) top(p string) string {
	if g.home != "" && g.home != "/" && p != g.home && host.Within(p, g.home) {
		return g.home
	}
	first, _, _ := strings.Cut(strings.TrimPrefix(p, "/"), "/")
	if slices.Contains(systemTrees(), first) {
		return ""
	}
	return "/"
}

// hides says whether what stands at p is somebody's secret. What does not exist hides nothing: a name that an answer lets the program make is its own.
func (g *nameGate) hides(p string) bool { return g.find(p).Hidden }

func (g *nameGate) find(p string) secrets.Finding {
	top := g.top(p)
	if top == "" {
		return secrets.Finding{}
	}
	rel := strings.TrimPrefix(strings.TrimPrefix(p, top), "/")
	if guard.SecretAt(rel, false).Secret == nil {
		return secrets.Finding{}
	}
	if _, err := (host.FS{}).Stamp(p); host.NotExist(err) {
		return secrets.Finding{}
	}
	return g.judge.At(top, rel)
}

// contentsRead is how many files of a tree are read before it counts as holding a secret.
const contentsRead = 2000

// within says whether a secret lies in a tree, or whether that cannot be known: such a tree is not mounted but shown name by name.
func (g *nameGate) within(dir string) bool {
	top := g.top(dir)
	if top == "" {
		return false
	}
	n, read := 0, 0
	err := filepath.WalkDir(dir, func(p string, e fs.DirEntry, err error) error {
		if n++; n > searchedFor {
			return errFound
		}
		if err != nil {
			if e != nil && e.IsDir() {
				return fs.SkipDir
			}
			return nil
		}
		if e.IsDir() && p != dir && (guard.Dependency(e.Name()) || e.Name() == ".git") {
			return fs.SkipDir
		}
		row := guard.SecretOf(e.Name(), e.IsDir())
		if row == nil || p == dir {
			return nil
		}
		if row.Holds != nil {
			read++
		}
		if read > contentsRead || g.hides(p) || e.IsDir() { // in a directory that keeps secrets each name is one
			return errFound
		}
		return nil
	})
	return errors.Is(err, errFound)
}

// named says what the name of a file in a tree that a run from here would show, or ask about, tells: that it is a secret's, or why it is none.
func (x *explainer) named(p string) secrets.Finding {
	if slices.ContainsFunc(x.in.Grants, func(g planner.Grant) bool { return g.Path == p && (g.Explicit || g.Why != "") && !x.isDir(p) }) {
		return secrets.Finding{} // who grants a single file has named it
	}
	top := x.in.ShownBy(p)
	if top == "" && !x.static {
		top = newNameGate(x.in).top(p)
	}
	return secretIn(x.in, top, p)
}

func (x *explainer) isDir(p string) bool {
	st, err := x.in.FS.Lstat(p)
	return err == nil && st.Type == host.Dir
}

// secretName answers for a name that is hidden.
func (x *explainer) secretName(p string, row *answerRow) bool {
	f := x.named(p)
	if !f.Hidden || policy.HiddenBy(x.env.Hidden, policy.KindPath, p) != nil { // said better by the list that has it
		return false
	}
	row.Decision, row.Layer, row.Rule, row.Reason, row.Scope = "absent", "secret", f.Rule, f.Reason(), "built-in"
	row.Once = "sbx run --ro " + quoting.Shell(p)
	row.Change = "none that lasts: copy what the program needs to a name that is no secret's"
	return true
}

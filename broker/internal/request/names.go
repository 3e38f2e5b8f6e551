package request

import (
	"errors"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"sbx.example/sbx/broker/internal/guard"
	"sbx.example/sbx/broker/internal/host"
	"sbx.example/sbx/broker/internal/planner"
	"sbx.example/sbx/broker/internal/secrets"
)

// NameGate judges the names of secrets in what a session was not started with and an answer may show. What the plan
// shows was judged by the planner, or is judged by who serves it.
type NameGate struct {
	Judge *secrets.Judge
	home  string

	foreign *host.Foreign
	linked  secretFiles
}

func NewNameGate(in *planner.Input) *NameGate {
	return &NameGate{Judge: secrets.New(host.FS{}, in.Own, in.GitDir), home: in.Facts.Home,
		foreign: in.Facts.Foreign, linked: secretFiles{hides: in.Hides}}
}

// systemTrees hold what came with the system: what is secret there is on the list, or no user can read it.
func systemTrees() []string {
	return []string{"bin", "boot", "dev", "etc", "lib", "lib32", "lib64", "libx32", "nix", "opt", "proc", "run", "sbin",
		"snap", "sys", "usr", "var"}
}

// Top is the directory that names are judged relative to; "" where they are not.
func (g *NameGate) Top(p string) string {
	if g.home != "" && g.home != "/" && p != g.home && host.Within(p, g.home) {
		return g.home
	}
	first, _, _ := strings.Cut(strings.TrimPrefix(p, "/"), "/")
	if slices.Contains(systemTrees(), first) {
		return ""
	}
	return "/"
}

// Hides says whether what stands at p is somebody's secret. What does not exist hides nothing: a name that an answer
// lets the program make is its own.
func (g *NameGate) Hides(p string) bool { return g.Find(p).Hidden }

func (g *NameGate) Find(p string) secrets.Finding {
	top := g.Top(p)
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
	return g.Judge.At(top, rel)
}

// searchedNames is how many names of a tree are looked at; a larger one counts as holding a secret.
const searchedNames = 50_000

var errHolds = errors.New("found")

// contentsRead is how many files of a tree are read before it counts as holding a secret.
const contentsRead = 2000

// Within says whether a secret lies in a tree, or whether that cannot be known: such a tree is not mounted but shown
// name by name.
func (g *NameGate) Within(dir string) bool {
	top := g.Top(dir)
	if top == "" {
		return false
	}
	n, read := 0, 0
	err := g.foreign.Walk(dir, func(p string, e fs.DirEntry, err error) error {
		if n++; n > searchedNames || errors.Is(err, host.ErrForeign) {
			return errHolds
		}
		if err != nil {
			if e != nil && e.IsDir() {
				return fs.SkipDir
			}
			return nil
		}
		if len(g.tokensOf(repositoryAt(p, e))) > 0 {
			return errHolds
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
		if read > contentsRead || g.Hides(p) || e.IsDir() { // in a directory that keeps secrets each name is one
			return errHolds
		}
		return nil
	})
	return errors.Is(err, errHolds)
}

// repositoryAt is the directory of the repository that a name in a tree tells of, "" for none.
func repositoryAt(p string, e fs.DirEntry) string {
	switch {
	case e.IsDir() && guard.Fold(e.Name()) == ".git":
		return p
	case !e.IsDir() && e.Name() == "HEAD":
		return filepath.Dir(p)
	}
	return ""
}

// tokensOf are the configurations of the repository at own that are shown without something that is in them. There is
// none at "".
func (g *NameGate) tokensOf(own string) []string {
	if own == "" {
		return nil
	}
	in := planner.Input{FS: host.FS{}}
	return slices.DeleteFunc(in.ConfigsOf(own), func(p string) bool { return !holdsToken(p) })
}

// Token says whether what stands at p is a repository's configuration with a password or token in it. Who reads it gets
// it without.
func (g *NameGate) Token(p string) bool { return g.Config(p) && holdsToken(p) }

// Config says whether what stands at p is the configuration of a repository: git looks for it beside a HEAD.
func (g *NameGate) Config(p string) bool {
	dir, base := filepath.Split(p)
	if g.Top(p) == "" || !guard.Config(base) {
		return false
	}
	return guard.Fold(filepath.Base(dir)) == ".git" || host.Exists(dir+"HEAD")
}

// holdsToken says whether a configuration holds a password or token, or whether that cannot be known.
func holdsToken(p string) bool {
	_, text, err := host.PeekPlain(p, planner.MaxConfigSize+1)
	if err != nil {
		return !host.NotExist(err)
	}
	return len(text) > planner.MaxConfigSize || len(guard.GitCredentials(text)) > 0
}

// SecretIn judges the name of p in the tree at top, "" for none.
func SecretIn(in *planner.Input, top, p string) secrets.Finding {
	if top == "" || p == top {
		return secrets.Finding{}
	}
	return in.Judge().At(top, strings.TrimPrefix(strings.TrimPrefix(p, top), "/"))
}

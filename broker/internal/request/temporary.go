package request

import (
	"path"
	"slices"
	"strings"
	"sync"

	"sbx.example/sbx/broker/internal/guard"
	"sbx.example/sbx/broker/internal/host"
	"sbx.example/sbx/broker/internal/planner"
	"sbx.example/sbx/broker/internal/policy/pathname"
	"sbx.example/sbx/broker/internal/quoting"
	"sbx.example/sbx/broker/plan"
)

// Originals lists the files that a program may be about to replace when it makes a file or directory at p: p is a
// temporary name of each (pathname.Originals). Nothing else is replaced by a name than a file that is none yet, or a
// regular one that nobody runs. Names that are guarded or a secret's have no temporary ones, and are none.
func Originals(in *planner.Input, p string, dir bool) []string {
	if in.Only != nil || !ordinary(p) { // with --only files are mounted, and nothing moves over a mount
		return nil
	}
	return slices.DeleteFunc(pathname.Originals(p, dir), func(f string) bool {
		st, err := host.FS{}.Lstat(f)
		there := st.Type == host.File && st.Perm&0o111 == 0
		return !ordinary(f) || err == nil && !there || err != nil && !host.NotExist(err)
	})
}

func ordinary(p string) bool {
	return guard.Look(strings.TrimPrefix(p, "/")).Action == guard.Free && guard.SecretOf(path.Base(p), false) == nil
}

// WritableFiles says, for decide.Env, whether a path is a regular file that the plan mounts for writing, by an option
// or a setting. What is mounted by a rule is the rule's to say: it may go.
func WritableFiles(in *planner.Input, p *plan.Plan) func(string) bool {
	files := sync.OnceValue(func() map[string]bool {
		out := map[string]bool{}
		for i := range p.Mounts {
			m := &p.Mounts[i]
			byRule := slices.ContainsFunc(in.Grants, func(g planner.Grant) bool { return g.Ruled && g.Why == m.Why })
			if !Itself(p, m) || byRule {
				continue
			}
			st, err := host.FS{}.Lstat(p.OnHost(m.Target))
			out[p.OnHost(m.Target)] = err == nil && st.Type == host.File
		}
		return out
	})
	return func(name string) bool { return files()[name] }
}

// Alone says whether a path is such a file, in whose directory nothing can be made: it is written in place, and no
// other file takes its name. In a static session nobody can be asked about that.
func Alone(in *planner.Input, p *plan.Plan) func(string) bool {
	files := WritableFiles(in, p)
	return func(name string) bool {
		return files(name) && !slices.ContainsFunc(p.Mounts, func(m plan.Mount) bool {
			return m.Access == plan.ReadWrite && host.Within(path.Dir(name), p.OnHost(m.Target))
		})
	}
}

// ToReplace is what it takes to put another file in the place of such a one. The whole home is too much for that.
func ToReplace(in *planner.Input, name string) string {
	if dir := path.Dir(name); !host.Within(in.Facts.Home, dir) {
		return "--rw " + quoting.Place(dir)
	}
	return "a session without --static"
}

// Itself says whether a mount is the host's object at its own place, for writing: no copy, and nothing that covers it.
func Itself(p *plan.Plan, m *plan.Mount) bool {
	return m.Kind == plan.Bind && m.Access == plan.ReadWrite && m.Source == p.OnHost(m.Target)
}

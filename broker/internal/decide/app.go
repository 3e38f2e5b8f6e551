package decide

import (
	"path"
	"slices"

	"sbx.example/sbx/broker/internal/policy"
	"sbx.example/sbx/broker/internal/policy/pathname"
)

// BaseDirs are where each program has a directory of its name: the base directories of XDG, absolute or "".
type BaseDirs struct{ Config, Data, State, Cache string }

// Bases are those of a person's environment. One that holds the home or the project, or lies in the project, is none: a
// project's .env may have set it, and what is in it is no program's own.
func Bases(v policy.Vars) BaseDirs {
	usual := func(dir string) string {
		inProject := v.Project != "" && (pathname.Within(v.Project, dir) || pathname.Within(dir, v.Project))
		if !path.IsAbs(dir) || pathname.Within(v.Home, dir) || inProject {
			return ""
		}
		return dir
	}
	return BaseDirs{Config: usual(v.XDGConfigHome), Data: usual(v.XDGDataHome), State: usual(v.XDGStateHome),
		Cache: usual(v.XDGCacheHome)}
}

// Offer names in a question the directories of the program that asks, if it is about something in one of them. The
// program has to be one that nothing inside could have put there: its name says whose the directories are. Cache and
// state are for writing, as the program makes them anew, unless they act outside. In configuration and data may be what
// it runs at its next start: they are for reading, but for the one that it wants to write in.
func (env Env) Offer(q *Question) {
	name, right := path.Base(q.Exe), q.Right()
	if !path.IsAbs(q.Exe) || name == "/" || q.Secret || q.Acts != "" || q.Alone() ||
		right != policy.List && right != policy.Read && right != policy.Write {
		return
	}
	var read, write []string
	asked := false
	b := env.Bases
	for i, base := range [...]string{b.Config, b.Data, b.Cache, b.State} {
		dir := path.Join(base, name)
		if base == "" || slices.Contains(read, dir) || slices.Contains(write, dir) {
			continue
		}
		here := pathname.Within(q.Path, dir) && pathname.Within(q.about(), dir)
		asked = asked || here
		if here && right == policy.Write || i >= 2 && !env.acts(dir) {
			write = append(write, dir)
		} else {
			read = append(read, dir)
		}
	}
	if asked && env.Runs != nil && env.Runs(q.PID, q.Exe, q.Exe) {
		q.AppRead, q.AppWrite = read, write
	}
}

// app are the grants of an answer about the program's own directories. A no is about what was asked for.
func (q *Question) app(allow bool) (out []Grant) {
	add := func(dirs []string, right policy.Access) {
		for _, d := range dirs {
			g := Grant{Kind: policy.KindPath, Name: d, Dir: true, Scope: Tree}
			if allow {
				g.Access = right
			}
			out = append(out, g)
		}
	}
	add(q.AppRead, policy.Read)
	add(q.AppWrite, policy.Write)
	return out
}

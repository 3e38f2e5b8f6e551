package decide

import (
	"path"
	"slices"

	"sbx.example/sbx/broker/internal/policy"
)

// BaseDirs are where each program has a directory of its name: the base directories of XDG, absolute or "".
type BaseDirs struct{ Config, Data, State, Cache string }

// Bases are those of a person's environment.
func Bases(v policy.Vars) BaseDirs {
	return BaseDirs{Config: v.XDGConfigHome, Data: v.XDGDataHome, State: v.XDGStateHome, Cache: v.XDGCacheHome}
}

// Offer names in a question the directories of the program that asks, if it is about something in one of them. Cache
// and state are for writing, as the program makes them anew. In configuration and data may be what it runs at its next
// start: they are for reading, but for the one that it wants to write in.
func (b BaseDirs) Offer(q *Question) {
	name := path.Base(q.Exe)
	right := q.Right()
	if !path.IsAbs(q.Exe) || name == "/" || q.Secret || q.Acts != "" || q.Alone() ||
		right != policy.List && right != policy.Read && right != policy.Write {
		return
	}
	var read, write []string
	asked := false
	for _, base := range [...]struct {
		dir  string
		anew bool
	}{{b.Cache, true}, {b.Config, false}, {b.Data, false}, {b.State, true}} {
		if !path.IsAbs(base.dir) {
			continue
		}
		dir := path.Join(base.dir, name)
		here := within(q.Path, dir) && within(q.about(), dir)
		asked = asked || here
		if to := &read; !slices.Contains(append(read, write...), dir) {
			if base.anew || here && right == policy.Write {
				to = &write
			}
			*to = append(*to, dir)
		}
	}
	if asked {
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

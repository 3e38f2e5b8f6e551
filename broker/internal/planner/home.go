package planner

import (
	"cmp"
	"path"
	"slices"
	"strings"
	"sync"

	"sbx.example/sbx/broker/internal/guard"
	"sbx.example/sbx/broker/internal/host"
	"sbx.example/sbx/broker/plan"
)

// atHome adds what runs by itself in the person's home and lies in a writable tree. What links in the home lead to is
// meant as well. Who grants such a place by its name means it, which is said.
func (in *Input) atHome(env []string) {
	written := in.written()
	if len(written) == 0 {
		return
	}
	places := in.homePlaces(env, func(list []host.Entry, real, pattern string) bool {
		first, _, _ := strings.Cut(pattern, "/")
		return host.Lists(list, first) || related(written, real, pattern)
	})
	in.Referred = append(in.Referred, places...)
	for _, p := range written {
		i := slices.IndexFunc(places, func(r guard.Referred) bool { return r.Names(p) })
		if i >= 0 {
			in.Losses = append(in.Losses, Loss{What: plan.Bytes(p).Quote() + " can be changed",
				Why: places[i].Why + ", outside of the sandbox", Price: true})
		}
	}
}

// homePlaces are where the names of guard.Home are that are wanted. Most names do not exist: wanted is given one
// listing of a home, and where that is.
func (in *Input) homePlaces(env []string, wanted func(list []host.Entry, real, pattern string) bool) (
	places []guard.Referred) {
	rules := guard.Home()
	for _, b := range in.homeDirs(env) {
		list, unlisted := in.FS.ReadDir(b.dir)
		real, _, _, err := host.Resolve(in.FS, b.dir)
		if err != nil && !host.NotExist(err) {
			continue
		}
		for _, r := range rules {
			if pattern, ok := b.has(r.Pattern); ok && (in.shut(b.dir, unlisted) != "" || wanted(list, real, pattern)) {
				places = in.place(places, b.dir, pattern, r.Why)
			}
		}
	}
	return places
}

// Acts returns what says why a place decides what runs outside of the sandbox ("a shell runs it"), and "" of any other:
// in a home, and by the names that are guarded anywhere. Env is the environment of programs outside. Files are looked
// at when it is first asked, and then no more.
func (in *Input) Acts(env []string) func(p string) string {
	places := sync.OnceValue(func() []guard.Referred {
		return in.homePlaces(env, func([]host.Entry, string, string) bool { return true })
	})
	return func(p string) string {
		for _, r := range places() {
			if r.Names(p) {
				return r.Why
			}
		}
		if v := guard.Look(strings.TrimPrefix(p, "/")); v.Action == guard.Guard || v.Action == guard.Check {
			return v.Why
		}
		return ""
	}
}

// written are what writable grants show of a person's own.
func (in *Input) written() (out []string) {
	for i := range in.Grants {
		if g := &in.Grants[i]; g.Mode == Write && g.guardable() {
			if canon, _, _, err := host.Resolve(in.FS, g.Path); err == nil && !slices.Contains(out, canon) {
				out = append(out, canon)
			}
		}
	}
	return out
}

// homeDir is a directory in which names of guard.Home are: those that begin with prefix, without that.
type homeDir struct{ dir, prefix string }

// The directories of a home that may be elsewhere.
const (
	configDir = ".config/"
	dataDir   = ".local/share/"
)

func (in *Input) homeDirs(env []string) (out []homeDir) {
	for _, home := range [...]string{in.Facts.Home, in.Facts.Account} {
		if home != "" {
			out = append(out, homeDir{home, ""}, homeDir{path.Join(home, configDir), configDir},
				homeDir{path.Join(home, dataDir), dataDir})
		}
	}
	for _, x := range [...]struct{ name, prefix string }{{"XDG_CONFIG_HOME", configDir}, {"XDG_DATA_HOME", dataDir}} {
		if dir := host.Lookup(env, x.name); path.IsAbs(dir) {
			if d := (homeDir{path.Clean(dir), x.prefix}); !slices.Contains(out, d) {
				out = append(out, d)
			}
		}
	}
	return out
}

// has is a pattern of guard.Home in the directory.
func (d homeDir) has(pattern string) (string, bool) {
	if d.prefix == "" {
		return pattern, !strings.HasPrefix(pattern, configDir) && !strings.HasPrefix(pattern, dataDir)
	}
	return strings.CutPrefix(pattern, d.prefix)
}

// related says whether a name in a directory lies in one of the trees, or one of them in what has the name.
func related(trees []string, dir, pattern string) bool {
	literal, _ := divide(pattern)
	return slices.ContainsFunc(trees, func(top string) bool {
		if !host.Within(top, dir) {
			return host.Within(dir, top)
		}
		rel := relative(top, dir)
		return rel == "" || literal == "" || host.Within(rel, literal) || host.Within(literal, rel)
	})
}

// divide takes a pattern's wildcards off.
func divide(pattern string) (literal, below string) {
	at := strings.IndexAny(pattern, `*?[\`)
	if at < 0 {
		return pattern, ""
	}
	at = strings.LastIndexByte(pattern[:at], '/') + 1
	return strings.TrimSuffix(pattern[:at], "/"), pattern[at:]
}

// place adds a name in a directory, where it really is, and the links on the way to it.
func (in *Input) place(places []guard.Referred, dir, pattern, why string) []guard.Referred {
	literal, below := divide(pattern)
	p := path.Join(dir, literal)
	canon, links, _, err := host.Resolve(in.FS, p)
	if canon == "" && host.NotExist(err) { // below something that is no directory
		return places
	}
	canon = cmp.Or(canon, p)
	places = append(places, guard.Referred{Path: canon, Below: below, Why: why})
	if canon != p {
		places = append(places, guard.Referred{Path: p, Below: below, Why: why})
	}
	for _, l := range links {
		if r := (guard.Referred{Path: l.Path, Why: why}); l.Path != p && !slices.Contains(places, r) {
			places = append(places, r)
		}
	}
	return places
}

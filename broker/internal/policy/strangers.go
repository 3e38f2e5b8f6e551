package policy

import (
	"path"
	"reflect"
	"slices"

	"sbx.example/sbx/broker/internal/policy/pathname"
)

// A project's file is written by whoever wrote the project. What of it may only narrow is judged last, when everything
// else is known, and by what it comes down to: a value that is narrow beside the defaults can be wide beside a profile
// that the user or an option chooses.

// Merge says what holds: merge, and of a project's file that is not trusted only what makes that narrower.
func Merge(l Layers, flags []Setting) (Effective, error) {
	rows := keyTable()
	l, doubtful := l.split(rows)
	base, err := merge(rows, l, flags)
	if err != nil {
		return base, err
	}
	now, ignored := base, []Notice(nil)
	for _, s := range inOrder(doubtful) {
		k, more := findKey(rows, s.Key), l.and(s)
		with, err := merge(rows, more, flags)
		if k == nil {
			return now, err
		}
		same := err == nil && reflect.DeepEqual(now.value(k), with.value(k))
		news := !now.said(k) && with.said(k)
		switch {
		case same && !(news && (k.asks || k.closes && with.value(k) == false)):
			// It says what holds anyway, and must not hold where that changes. Or the user's file says otherwise.
			ignored = append(ignored, with.lockedAt(s.Origin)...)
			if k.host && !k.narrower(now.value(k), s.Value) {
				ignored = append(ignored, Notice{NoticeWidening, k.name, s.Origin, widening(k)})
			}
		case err != nil || same && k.asks || !k.takesAway(base.value(k), with.value(k)) || opens(base, with):
			ignored = append(ignored, Notice{NoticeWidening, k.name, s.Origin, widening(k)})
		default:
			l, now = more, with
			now.without = &base
		}
	}
	now.Notices = append(now.Notices, ignored...)
	return now, nil
}

// Without is what holds without the project's file, where that is not trusted and makes something narrower.
func (e Effective) Without() (base Effective, narrowed bool) {
	if e.without == nil {
		return e, false
	}
	return *e.without, true
}

func widening(k *key) string {
	if k.host {
		return "ignored: a project file cannot decide this, trusted or not"
	}
	return "ignored: it would widen what holds without this file; `sbx policy trust` shows and pins it"
}

// split takes out of a project's file what may only narrow: all of it, and of one that is trusted what decides about
// the host.
func (l Layers) split(rows []key) (Layers, []Setting) {
	if l.Project == nil {
		return l, nil
	}
	file := *l.Project
	doubtful := slices.Clone(file.Settings)
	file.Settings = nil
	if l.Trusted {
		host := func(s Setting) bool { k := findKey(rows, s.Key); return k != nil && k.host }
		file.Settings = slices.DeleteFunc(slices.Clone(doubtful), host)
		doubtful = slices.DeleteFunc(doubtful, func(s Setting) bool { return !host(s) })
	}
	l.Project = &file
	return l, doubtful
}

// and are the layers with one more setting in the project's.
func (l Layers) and(s Setting) Layers {
	file := *l.Project
	file.Settings = append(slices.Clone(file.Settings), s)
	l.Project = &file
	return l
}

// lockedAt are the notices that a setting is final and another one has no effect.
func (e Effective) lockedAt(o Origin) []Notice {
	return slices.DeleteFunc(slices.Clone(e.Notices), func(n Notice) bool {
		return n.Kind != NoticeLocked || n.Origin != o
	})
}

// opens says whether b shows more of a place than a, or reaches more, by all its settings together: an entry that is
// gone from one list can have kept closed what another one opens around it.
func opens(a, b Effective) bool {
	if b.reached(true).exceeds(a.reached(true)) {
		return true
	}
	before, after := a.places(), b.places()
	for _, list := range [...]map[string]showing{before, after} {
		for p := range list {
			if showingAt(after, p) > showingAt(before, p) {
				return true
			}
		}
	}
	return false
}

// showing is what a place is for a program, from nothing on.
type showing int

const (
	scratch showing = iota + 1
	readable
	layered
	written
)

// places are the paths that lists name. Of two that name the same, the plan takes the weaker one of those that write.
func (e Effective) places() map[string]showing {
	out := map[string]showing{}
	for _, x := range [...]struct {
		list []string
		as   showing
	}{{e.Profile.ReadOnly, readable}, {e.FS.ReadOnly, readable}, {e.Writable(), written},
		{e.list("fs.overlay"), layered}, {e.list("fs.tmpfs"), scratch}} {
		for _, p := range x.list {
			p, _ = pathname.SplitOptional(p)
			out[p] = x.as
		}
	}
	return out
}

// showingAt is what the innermost of the named places around p says.
func showingAt(places map[string]showing, p string) showing {
	for {
		if s, ok := places[p]; ok || p == "/" || p == "." {
			return s
		}
		p = path.Dir(p)
	}
}

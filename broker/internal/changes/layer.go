//go:build linux

package changes

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"sbx.example/sbx/broker/internal/guard"
	"sbx.example/sbx/broker/plan"
)

// Layer is one writable layer of a session over a directory of the host.
type Layer struct {
	Target string   // the host's directory, which is also where it was seen inside
	Upper  string   // what was written
	Hide   []string // names below Target that did not exist inside
	Why    string   // the plan's word for where the grant came from
	Git    bool     // Target is a repository's own directory
	// Guarded is about names below Target that the host's settings make something run by, beside the built-in ones.
	Guarded []guard.Rule
	// Ended: the session has, and nobody else writes to the layer or reads it.
	Ended   bool
	since   unix.Timespec
	session string // the session's folder
	existed bool   // the host had Target
	mixed   bool   // what was seen there was not all the host's
	index   string // see NoteIndexes; empty: not known

	elsewhere func(string) bool // see Elsewhere; nil: nothing is
}

// containers is the Why of the place where a session keeps containers: nothing in it is a change of the host's files.
const containers = "--containers"

// cache is the Why of what tools can make again. With agent the Why begins of what the profile of an agent throws away.
const (
	cache = "cache"
	agent = "agent "
)

// Layers lists the layers of the session whose folder is dir. Those of caches are left out unless all is set. No other
// is: whoever applies what is listed loses the rest, and a person may have wanted that.
func Layers(p *plan.Plan, dir string, all bool) ([]Layer, error) {
	var out []Layer
	top := dir + "/overlay/"
	indexes := notedIndexes(dir)
	for i := range p.Mounts {
		m := &p.Mounts[i]
		upper := m.Upper
		if m.Kind == plan.Bind {
			upper = m.Source
		}
		if m.Kind != plan.Overlay && m.Kind != plan.Bind || !strings.HasPrefix(string(upper), top) {
			continue
		}
		if m.Why == containers || !all && (m.Why == cache || strings.HasPrefix(m.Why, agent)) {
			continue
		}
		l := Layer{Target: m.Target, Upper: string(upper), Why: m.Why, Git: m.Why == Repository, elsewhere: Elsewhere(p),
			index: indexes[plan.Bytes(m.Target)], session: dir,
			existed: slices.Contains(m.Lower, m.Target), mixed: len(m.Lower) > 1}
		for _, h := range m.Hide {
			l.Hide = append(l.Hide, string(h))
		}
		// The folder of a layer gets its entries when the session is made, before its program runs, and
		// none after.
		var st unix.Stat_t
		if err := unix.Lstat(filepath.Dir(l.Upper), &st); err == unix.ENOENT {
			continue // thrown away
		} else if err != nil {
			return nil, fmt.Errorf("looking at layer %s: %w", l.Upper, err)
		}
		l.since = st.Mtim
		out = append(out, l)
	}
	return out, nil
}

func after(a, b unix.Timespec) bool { return a.Sec > b.Sec || a.Sec == b.Sec && a.Nsec > b.Nsec }

// hides says whether rel is a hidden name or lies below one.
func (l *Layer) hides(rel string) bool {
	for _, h := range l.Hide {
		if rel == h || strings.HasPrefix(rel, h+"/") {
			return true
		}
	}
	return false
}

// hidesBelow says whether a hidden name lies below rel. What the program saw of such a directory came
// from the layer that hides names, its mode too.
func (l *Layer) hidesBelow(rel string) bool {
	for _, h := range l.Hide {
		if strings.HasPrefix(h, rel+"/") {
			return true
		}
	}
	return false
}

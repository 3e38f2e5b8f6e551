//go:build linux

package names

import (
	"os"
	"path"

	"golang.org/x/sys/unix"

	"sbx.example/sbx/broker/internal/guard"
)

// Leaving is a directory that may get another name, in a granted tree.
type Leaving struct {
	Dir      int    // where it is
	Base     string // in that
	Top      string // what was granted
	Path     string // below that
	From, To *guard.Place
	Own      func(guard.ID) bool // whether a directory is the session's own
}

// Reveals says whether something below a directory is hidden in the one place and not in the other, or guarded and not
// the session's own, or whether that cannot be told.
func (k Keeper) Reveals(m Leaving) bool {
	if m.From.Alike(m.To) {
		return false
	}
	left := maxLinked
	return k.reveals(m, &left)
}

func (k Keeper) reveals(m Leaving, left *int) bool {
	fd, err := OpenBeneath(m.Dir, m.Base, unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_DIRECTORY, 0)
	if err != nil {
		return true
	}
	f := os.NewFile(uintptr(fd), m.Base)
	defer f.Close()
	id, err := ID(fd)
	if err != nil {
		return true
	}
	own := m.Own(id)
	list, err := f.ReadDir(-1)
	if *left -= len(list); err != nil || *left < 0 {
		return true
	}
	for _, e := range list {
		at := path.Join(m.Path, e.Name())
		was, next := m.From.Rule(e.Name(), guard.ByHost), m.To.Rule(e.Name(), guard.ByHost)
		c := Name{Dir: fd, Base: e.Name(), Top: m.Top, Path: func() string { return at }, Row: was.Secret}
		if was.Action == guard.Hide && next.Action != guard.Hide ||
			was.Action != guard.Free && next.Action == guard.Free && !own ||
			was.Secret != nil && next.Secret == nil && !k.Shows(c) {
			return true
		}
		if !e.IsDir() {
			continue
		}
		from, to := m.From.Below(e.Name()), m.To.Below(e.Name())
		below := Leaving{Dir: fd, Base: e.Name(), Top: m.Top, Path: at, From: from, To: to, Own: m.Own}
		if !from.Alike(to) && k.reveals(below, left) {
			return true
		}
	}
	return false
}

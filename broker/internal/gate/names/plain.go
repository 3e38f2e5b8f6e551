//go:build linux

package names

import (
	"os"
	"path"

	"golang.org/x/sys/unix"

	"sbx.example/sbx/broker/internal/guard"
	"sbx.example/sbx/broker/internal/host"
)

// maxPlain bounds how many names are looked through at a time.
const maxPlain = 50_000

// Plain says whether no name below a directory is guarded where it is to lie next, and which directories there are, it
// the first.
func Plain(dir int, name string, next *guard.Place) (dirs []guard.ID, plain bool) {
	left := maxPlain
	return plainBelow(dir, name, next, nil, &left)
}

func plainBelow(dir int, name string, next *guard.Place, dirs []guard.ID, left *int) ([]guard.ID, bool) {
	fd, err := OpenBeneath(dir, name, unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_DIRECTORY, 0)
	if err != nil {
		return nil, false
	}
	f := os.NewFile(uintptr(fd), name)
	defer f.Close()
	id, err := ID(fd)
	if err != nil {
		return nil, false
	}
	dirs = append(dirs, id)
	list, err := f.ReadDir(-1)
	if *left -= len(list); err != nil || *left < 0 {
		return nil, false
	}
	for _, e := range list {
		v := next.Rule(e.Name(), guard.ByHost)
		if v.Action != guard.Free || v.Anchored || v.Chosen && e.Type() == os.ModeSymlink {
			return nil, false
		}
		if !e.IsDir() {
			continue
		}
		var plain bool
		if dirs, plain = plainBelow(fd, e.Name(), next.Below(e.Name()), dirs, left); !plain {
			return nil, false
		}
	}
	return dirs, true
}

// Come tells w, which may be nil, what people run by a build or a test below a directory that takes another's place.
// Rel is where that is below what was granted, at where it is outside.
func Come(w guard.Witness, dir int, name, rel, at string) {
	if left := maxPlain; w != nil {
		come(w, dir, name, rel, at, &left)
	}
}

func come(w guard.Witness, dir int, name, rel, at string, left *int) {
	fd, err := OpenBeneath(dir, name, unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_DIRECTORY, 0)
	if err != nil {
		return
	}
	f := os.NewFile(uintptr(fd), name)
	defer f.Close()
	id, err := ID(fd)
	if err != nil {
		return
	}
	list, _ := f.ReadDir(-1)
	*left -= len(list)
	for _, e := range list {
		below := path.Join(rel, e.Name())
		switch {
		case *left < 0:
			return
		case e.IsDir():
			come(w, fd, e.Name(), below, path.Join(at, e.Name()), left)
		case guard.RunLater(below):
			w.Came(id, e.Name(), path.Join(at, e.Name()))
		}
	}
}

// Free is Plain for a directory of any size that has left a place.
func Free(dir int, name string, was *guard.Place) bool {
	left := maxLinked
	_, plain := plainBelow(dir, name, was, nil, &left)
	return plain
}

// maxLinked bounds how many names are looked through in a directory that moves.
const maxLinked = 1 << 20

// LeadsOut says whether a .git file below a directory leads out of that by the way from there, or whether that cannot
// be told. It would lead to another repository from another place.
func LeadsOut(dir int, name string) bool {
	left := maxLinked
	return leadsOut(dir, name, "", &left)
}

func leadsOut(dir int, name, rel string, left *int) bool {
	fd, err := OpenBeneath(dir, name, unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_DIRECTORY, 0)
	if err != nil {
		return true
	}
	f := os.NewFile(uintptr(fd), name)
	defer f.Close()
	list, err := f.ReadDir(-1)
	if *left -= len(list); err != nil || *left < 0 {
		return true
	}
	for _, e := range list {
		at := path.Join(rel, e.Name())
		switch {
		case e.IsDir():
			if leadsOut(fd, e.Name(), at, left) {
				return true
			}
		case guard.Fold(e.Name()) == ".git" && e.Type().IsRegular():
			text, err := peek(fd, e.Name())
			if err != nil || guard.LeadsOut(at, text) {
				return true
			}
		}
	}
	return false
}

func peek(dir int, name string) ([]byte, error) {
	fd, err := OpenBeneath(dir, name, unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer unix.Close(fd)
	return host.PeekAt(fd, 0, unix.PathMax)
}

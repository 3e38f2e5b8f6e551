//go:build linux

package placeholders

import (
	"os"
	"path"
	"strconv"

	"golang.org/x/sys/unix"

	"sbx.example/sbx/broker/internal/gate/names"
	"sbx.example/sbx/broker/internal/host"
)

// Set are names below a directory.
type Set struct {
	names []string
	since int64 // nanoseconds; what is older stays, and what is somebody else's. 0: the names were missing then
}

// Missing are those of the names that a directory does not have.
func Missing(dir string, list []string) (s Set) {
	for _, name := range list {
		if !host.Exists(path.Join(dir, name)) {
			s.names = append(s.names, name)
		}
	}
	return s
}

// Remove removes those of them that are empty. If anything has to stay that is in one, all of it does.
func (s Set) Remove(dir string) {
	if len(s.names) == 0 {
		return
	}
	top, err := names.HoldPlainDirectory(dir) // another session may write around it, and put a link in its place
	if err != nil {
		return
	}
	defer unix.Close(top)
	s.removeIn(top)
}

func (s Set) removeIn(top int) {
	s.each(top, func(at int, dir, name string) {
		p := path.Join(dir, name)
		_ = s.walk(at, p, false) && s.walk(at, p, true)
	})
}

// each calls do with every name whose directory there is, that directory, and the path of top. Nothing on the way is a
// link.
func (s Set) each(top int, do func(at int, dir, name string)) {
	dir, err := os.Readlink("/proc/self/fd/" + strconv.Itoa(top))
	if err != nil {
		return
	}
	for _, name := range s.names {
		at, err := names.OpenBeneath(top, path.Dir(name), unix.O_PATH|unix.O_DIRECTORY|unix.O_NOFOLLOW, 0)
		if err != nil {
			continue
		}
		do(at, dir, name)
		unix.Close(at)
	}
}

// fresh says whether what has a name is the agent's: it was made since then.
func (s Set) fresh(at int, name string) bool {
	if s.since == 0 {
		return true
	}
	st, err := host.StampOf(at, name)
	return err == nil && st.Born > s.since // where the file system does not say when, it stays
}

// walk says whether something can be removed: an empty file, or a directory in which nothing else is. It removes it if
// it is told to.
func (s Set) walk(at int, p string, really bool) bool {
	name := path.Base(p)
	var st unix.Stat_t
	if names.Stat(at, name, &st) != nil || !s.fresh(at, name) || s.since != 0 && st.Uid != uint32(os.Getuid()) {
		return false
	}
	switch st.Mode & unix.S_IFMT {
	case unix.S_IFREG:
		return st.Size == 0 && st.Nlink == 1 && !open(at, name) && !tracked(p) &&
			(!really || unix.Unlinkat(at, name, 0) == nil)
	case unix.S_IFDIR:
	default:
		return false
	}
	fd, err := names.OpenBeneath(at, name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW, 0)
	if err != nil {
		return false
	}
	f := os.NewFile(uintptr(fd), name)
	defer f.Close()
	list, err := f.ReadDir(-1)
	for _, e := range list {
		if err != nil || !s.walk(fd, path.Join(p, e.Name()), really) {
			return false
		}
	}
	return err == nil && (!really || unix.Unlinkat(at, name, unix.AT_REMOVEDIR) == nil)
}

// open says whether somebody is about to write to a file.
func open(at int, name string) bool {
	fd, err := names.OpenBeneath(at, name, unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return false
	}
	defer unix.Close(fd)
	return names.BeingWritten(fd)
}

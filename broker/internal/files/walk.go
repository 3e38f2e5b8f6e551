//go:build linux

package files

import (
	"fmt"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// A path is walked name by name, each in a directory that is held open and none by following a link: what is
// found is below the root, whatever is renamed meanwhile. It is what openat2(2) does with RESOLVE_BENEATH and
// RESOLVE_NO_MAGICLINKS, which does not exist inside a session: a filter cannot look into its arguments.

const (
	maxLinks = 40
	hold     = unix.O_PATH | unix.O_NOFOLLOW | unix.O_CLOEXEC
)

// walker walks below one directory.
type walker struct {
	root    string
	dirs    []int // held, from the root down
	links   int
	parents bool // what is missing on the way is made
}

// place is where a path leads: a name in a directory that is held.
type place struct {
	dir  int
	name string // "." is the root itself
	kind uint32 // S_IFMT of what has the name; 0: nothing has
}

// newWalker opens a root. No link is followed to it: who may make one on the way would choose another.
func newWalker(root string) (*walker, error) {
	fd, err := unix.Open("/", hold|unix.O_DIRECTORY, 0)
	if err != nil {
		return nil, fmt.Errorf("opening /: %w", err)
	}
	for name := range strings.FieldsFuncSeq(root, func(r rune) bool { return r == '/' }) {
		next, err := openAt(fd, name, hold|unix.O_DIRECTORY, 0)
		unix.Close(fd)
		if err == unix.ENOTDIR || err == unix.ELOOP {
			return nil, fault(codeLink, "root %s: %s on its way is no directory, or a link", root, name)
		}
		if err != nil {
			return nil, fmt.Errorf("opening root %s: %w", root, err)
		}
		fd = next
	}
	return &walker{root: root, dirs: []int{fd}}, nil
}

func (w *walker) close() { w.up(0) }

// up lets go of the directories below the first n.
func (w *walker) up(n int) {
	for _, fd := range w.dirs[n:] {
		unix.Close(fd)
	}
	w.dirs = w.dirs[:n]
}

// walk finds where a path below the root leads. It may be called again.
func (w *walker) walk(rel string) (place, error) {
	w.up(1)
	w.links = 0
	rest := strings.Split(rel, "/")
	for {
		for len(rest) > 0 && (rest[0] == "" || rest[0] == ".") {
			rest = rest[1:]
		}
		at := w.dirs[len(w.dirs)-1]
		if len(rest) == 0 {
			return place{at, ".", unix.S_IFDIR}, nil
		}
		name := rest[0]
		rest = rest[1:]
		if name == ".." {
			if len(w.dirs) > 1 {
				w.up(len(w.dirs) - 1)
			} else if w.root != "/" {
				return place{}, w.leaves(rel)
			}
			continue
		}
		fd, kind, err := w.look(at, name)
		switch {
		case err == unix.ENOENT && isLast(rest):
			return place{at, name, 0}, nil
		case err == unix.ENOENT && w.parents:
			if fd, err = makeDir(at, name); err != nil {
				return place{}, err
			}
			kind = unix.S_IFDIR
		case err != nil:
			return place{}, err
		}
		switch {
		case kind == unix.S_IFLNK:
			rest, err = w.follow(fd, rel, rest)
			unix.Close(fd)
			if err != nil {
				return place{}, err
			}
		case kind == unix.S_IFDIR && len(rest) > 0:
			w.dirs = append(w.dirs, fd)
		case len(rest) > 0:
			unix.Close(fd)
			return place{}, unix.ENOTDIR
		default:
			unix.Close(fd)
			return place{at, name, kind}, nil
		}
	}
}

// isLast says whether nothing is named any more.
func isLast(rest []string) bool {
	return !slices.ContainsFunc(rest, func(name string) bool { return name != "" && name != "." })
}

// look holds what has a name, and says of which kind it is. It asks nobody about more: that would be another question.
func (w *walker) look(dir int, name string) (fd int, kind uint32, err error) {
	if fd, err = openAt(dir, name, hold, 0); err != nil {
		return -1, 0, err
	}
	var st unix.Statx_t
	if err = unix.Statx(fd, "", unix.AT_EMPTY_PATH|unix.AT_STATX_DONT_SYNC, unix.STATX_TYPE, &st); err != nil {
		unix.Close(fd)
		return -1, 0, err
	}
	return fd, uint32(st.Mode) & unix.S_IFMT, nil
}

// follow is what is left to walk after the link that fd is.
func (w *walker) follow(fd int, rel string, rest []string) ([]string, error) {
	var fs unix.Statfs_t
	if err := unix.Fstatfs(fd, &fs); err != nil {
		return nil, err
	}
	if fs.Type == unix.PROC_SUPER_MAGIC { // where the kernel leads elsewhere than it says
		return nil, fault(codeLink, "%s: no link of /proc is followed", rel)
	}
	var buf [unix.PathMax]byte
	n, err := unix.Readlinkat(fd, "", buf[:])
	if err != nil {
		return nil, err
	}
	if w.links++; w.links > maxLinks {
		return nil, unix.ELOOP
	}
	to := string(buf[:n])
	if strings.HasPrefix(to, "/") {
		below, ok := beneath(w.root, to)
		if !ok {
			return nil, w.leaves(rel)
		}
		w.up(1)
		to = below
	}
	return append(strings.Split(to, "/"), rest...), nil
}

func (w *walker) leaves(rel string) error {
	return fault(codeLink, "%s leads out of %s: name what it leads to, if that is meant", rel, w.root)
}

// makeDir makes a directory and holds it.
func makeDir(dir int, name string) (int, error) {
	if err := unix.Mkdirat(dir, name, 0o777); err != nil && err != unix.EEXIST {
		return -1, fmt.Errorf("making directory %s: %w", name, err)
	}
	return openAt(dir, name, hold|unix.O_DIRECTORY, 0)
}

// openAt opens one name. It waits as long as a question does.
func openAt(dir int, name string, flags int, mode uint32) (int, error) {
	for {
		fd, err := unix.Openat(dir, name, flags|unix.O_CLOEXEC, mode)
		if err != unix.EINTR {
			return fd, err
		}
	}
}

// open opens what was found, which has to be of the kind still. Nothing is waited for where that is a pipe by now, and
// no device can be made inside.
func (p *place) open(flags int, kind uint32) (int, error) {
	fd, err := openAt(p.dir, p.name, flags|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_NOCTTY, 0)
	if err != nil {
		return -1, err
	}
	var st unix.Stat_t
	if err = unix.Fstat(fd, &st); err == nil && st.Mode&unix.S_IFMT != kind {
		err = unix.ESTALE
	}
	if err != nil {
		unix.Close(fd)
		return -1, err
	}
	return fd, nil
}

//go:build linux

package repositories

import (
	"crypto/sha256"
	"path"

	"golang.org/x/sys/unix"

	"sbx.example/sbx/broker/internal/guard"
	"sbx.example/sbx/broker/internal/host"
	"sbx.example/sbx/broker/plan"
)

// What people run by a build or a test, and the session may have written, is compared with what it was: a program may
// open it and write nothing, or move it away and back.

// place is a name in a directory, wherever that is now.
type place struct {
	dir  guard.ID
	name string
}

// changing is what was known of a name before the session could change it.
type changing struct {
	path string // then
	held int    // the directory, where it may be found again; -1: not held
	came bool   // with a directory that took another's place
	was  state
}

// state is what has a name. Contents are compared where they can be read and are small, else all that a change sets.
type state struct {
	sum  [sha256.Size]byte
	read bool
	st   unix.Stat_t // zero where it was read, or where there was nothing
}

// maxCompared bounds the files whose contents are compared.
const maxCompared = 1 << 20

func stateOf(dir int, name string) state {
	var s state
	if unix.Fstatat(dir, name, &s.st, unix.AT_SYMLINK_NOFOLLOW) != nil {
		return state{}
	}
	s.st.Atim, s.st.Nlink = unix.Timespec{}, 0
	var text []byte
	switch s.st.Mode & unix.S_IFMT {
	case unix.S_IFLNK:
		buf := make([]byte, unix.PathMax)
		n, err := unix.Readlinkat(dir, name, buf)
		if err != nil {
			return s
		}
		text = buf[:n]
	case unix.S_IFREG:
		fd, err := unix.Openat(dir, name, unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
		if err != nil {
			return s
		}
		defer unix.Close(fd)
		if text, err = host.PeekAt(fd, 0, maxCompared+1); err != nil || len(text) > maxCompared {
			return s
		}
	default:
		return s
	}
	return state{sum: sha256.Sum256(append(text, byte(s.st.Mode&unix.S_IFMT>>12))), read: true}
}

// Changing is guard.Witness's.
func (l *Left) Changing(id guard.ID, dir int, name, at string) {
	key := place{id, name}
	l.mu.Lock()
	_, known := l.changed[key]
	l.mu.Unlock()
	if known {
		return
	}
	c := changing{path: at, was: stateOf(dir, name), held: -1}
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, known := l.changed[key]; known {
		return
	}
	if fd, err := holdAnother(l.held, maxWorkspaces, dir); err == nil {
		c.held, l.held = fd, l.held+1
	}
	remember(&l.changed, key, c, maxLookedThrough)
}

// Came is guard.Witness's.
func (l *Left) Came(id guard.ID, name, at string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	remember(&l.changed, place{id, name}, changing{path: at, held: -1, came: true}, maxLookedThrough)
}

// inChanged says what of that is another now, and where it is.
func (l *Left) inChanged(p *plan.Plan) []string {
	var files []string
	for key, c := range l.changed {
		if now, differs := c.now(p, key); differs {
			files = append(files, now)
		}
		if c.held >= 0 {
			unix.Close(c.held)
		}
	}
	l.changed, l.held = nil, 0
	return files
}

// now is where a name is, and whether it has another state. Where its directory is not found, that counts as a change.
func (c *changing) now(p *plan.Plan, key place) (at string, differs bool) {
	dir, err := unix.Open(path.Dir(c.path), unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err == nil {
		defer unix.Close(dir)
	}
	at = c.path
	if err != nil || identity(dir, "") != key.dir {
		name, nerr := "", error(unix.EBADF)
		if c.held >= 0 {
			name, nerr = nameOf(p, c.held)
		}
		if nerr != nil || c.came {
			return at, !c.came
		}
		dir, at = c.held, path.Join(name, key.name)
	}
	now := stateOf(dir, key.name)
	return at, now != (state{}) && now != c.was
}

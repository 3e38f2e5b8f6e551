//go:build linux

package notify

import (
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// look is what a call does with the object that a name leads to, as far as it matters where something stands that only
// leads to the host's object.
type look uint8

const (
	uses   look = iota // opens, lists, enters, watches or executes it
	sees               // its type and attributes
	writes             // changes it, or its name
)

func (c *call) look(flags uint64) look {
	switch c.kind {
	case kindStat, kindStatx, kindStatfs, kindAccess, kindReadlink, kindXattr:
		return sees
	case kindWrite, kindMake, kindDrop, kindMove:
		return writes
	case kindOpen:
		if flags&unix.O_PATH == 0 && (flags&unix.O_ACCMODE != unix.O_RDONLY || flags&unix.O_TRUNC != 0) {
			return writes
		}
	}
	return uses
}

func (r *request) look() look { return r.c.look(r.flags) }

// grafted are the mounts of single files, by their number in the sandbox. They are for reading; to write one is another
// question.
type grafted struct{ ids sync.Map }

func (g *grafted) has(mount uint64) bool {
	_, ok := g.ids.Load(mount)
	return ok
}

// note finds out the number of the mount at path.
func (g *grafted) note(root *sandboxRoot, path string) {
	if fd, e := root.open(path); e == 0 {
		if id, typ, err := identify(fd); err == nil && typ == unix.S_IFREG && id.mount != root.id.mount {
			g.ids.Store(id.mount, path)
		}
		unix.Close(fd)
	}
}

// leads says whether an object inside only stands for one of the host's: the places that the agent has made lie on the
// root's own file system, where the sandbox has no file of its own and no directory that may be listed.
func (s *server) leads(root *sandboxRoot, id identity, typ uint16, l look) bool {
	if id.mount == root.id.mount {
		return typ == unix.S_IFREG || typ == unix.S_IFDIR && l != sees
	}
	return l == writes && s.files.has(id.mount)
}

// placedThere is exists once something was placed: EREMOTE where what is found may only stand for something else.
func (s *server) placedThere(root *sandboxRoot, pathNUL []byte, flags, resolve uint64, l look) syscall.Errno {
	fd, e := openPath(root.fd, pathNUL, flags, resolve|unix.RESOLVE_IN_ROOT)
	if e != 0 {
		return e
	}
	defer unix.Close(fd)
	if id, typ, err := identify(fd); err == nil && s.leads(root, id, typ, l) {
		return unix.EREMOTE
	}
	return 0
}

// stands says whether what the sandbox has at p, the child c of w.cur, is what a walk arrives at, and not a place that
// stands for the host's object or a file that the host has replaced since it was mounted.
func (w *walker) stands(p, c string, fd int, last bool) bool {
	if w.grafter == nil {
		return true
	}
	id, typ, err := identify(fd)
	switch {
	case err != nil:
		return true
	case id.mount == w.root.id.mount && typ == unix.S_IFREG:
		return false
	case id.mount == w.root.id.mount && typ == unix.S_IFDIR:
		return !last || w.look == sees || w.grafter.Own(p)
	case !last || !w.files.has(id.mount):
		return true
	case w.look == writes:
		return false
	}
	now, _, e := w.openHost(p, c)
	if e != 0 {
		return true
	}
	defer unix.Close(now)
	host, _, err := identify(now)
	return err != nil || host.ino == id.ino && host.major == id.major && host.minor == id.minor
}

//go:build linux

package writes

import (
	"path"
	"syscall"

	"golang.org/x/sys/unix"

	"sbx.example/sbx/broker/internal/guard"
)

// InPlace says what Landlock grants in trees that hold hidden names.
type InPlace struct {
	Split   []string // directories of which the entries are granted, and not the whole
	Granted []string // those entries
}

// entries identifies what is granted.
func (x *InPlace) entries() map[string]guard.ID {
	if x == nil {
		return nil
	}
	out := make(map[string]guard.ID, len(x.Granted))
	for _, p := range x.Granted {
		out[p] = idOf(unix.AT_FDCWD, p)
	}
	return out
}

// pass lets the kernel carry a call out, which knows what may be written: a mount says so, or Landlock does.
func (j *job) pass() {
	if j.InPlace != nil && !j.governed() {
		j.call.Fail(unix.EACCES)
		return
	}
	j.call.Continue()
}

// governed says whether Landlock decides about a call: about the names that it makes and the files that it opens, but
// not about attributes, nor, before ABI 3, about a file that is emptied by who only reads it.
func (j *job) governed() bool {
	switch j.d.kind {
	case kindAlter:
		return false
	case kindOpen:
		return j.flags&unix.O_TRUNC == 0 || j.flags&unix.O_ACCMODE != unix.O_RDONLY
	}
	return true
}

// readsOnly says whether a call opens what is there to be read.
func (j *job) readsOnly() bool {
	return j.flags&(unix.O_ACCMODE|unix.O_CREAT|unix.O_TRUNC|nameless) == 0
}

// unshown says whether the kernel would not let a file of a tree be read for that alone: it lies in a directory with a
// hidden name, of which the entries were granted as they were when the session began, and is none of those, nor in one.
func (k *Carrier) unshown(n *name) bool {
	if k.InPlace == nil {
		return false
	}
	abs := n.abs()
	for dir, entry := path.Dir(abs), abs; within(dir, n.root.Path); dir, entry = path.Dir(dir), dir {
		for _, s := range k.InPlace.Split {
			if s != dir {
				continue
			}
			was, ok := k.shown[entry]
			return !ok || was != idOf(unix.AT_FDCWD, entry)
		}
	}
	return false
}

// mayRead says whether what has a name may be read.
func mayRead(r ruling) syscall.Errno {
	if r.Action == guard.Hide {
		return unix.EACCES
	}
	return 0
}

// isNameless says whether a file has no name at all. In place a mount does not tell what was opened through a tree from
// what the program can only read.
func isNameless(fd int) bool {
	var st unix.Stat_t
	return unix.Fstat(fd, &st) == nil && st.Nlink == 0
}

//go:build linux

package writes

import (
	"os"
	"path"
	"slices"
	"syscall"

	"golang.org/x/sys/unix"

	"sbx.example/sbx/broker/internal/gate/names"
	"sbx.example/sbx/broker/internal/guard"
)

// InPlace says what Landlock grants in trees that hold hidden names.
type InPlace struct {
	Split   []string          // directories of which the entries are granted, and not the whole
	Granted []string          // those entries
	Copies  map[string]string // what stands for files that are not shown, where they are read
	// Closed is the mount point of a file system that is not looked into, over a path, empty if there is none.
	Closed func(p string) string
}

// covered is what stood in such directories when the session began and is not granted: the plan hides it, or shows
// something else in its place. It is known by its path, under which the host may make it anew, and by its identity,
// which a directory above it takes along to another path.
type covered struct {
	paths map[string]bool
	ids   map[guard.ID]bool
}

func (x *InPlace) covered(roots []root) covered {
	c := covered{map[string]bool{}, map[guard.ID]bool{}}
	if x == nil {
		return c
	}
	for _, dir := range x.Split {
		if !slices.ContainsFunc(roots, func(r root) bool { return within(dir, r.Path) }) {
			continue // nothing is carried out there
		}
		list, _ := os.ReadDir(dir)
		for _, e := range list {
			p := path.Join(dir, e.Name())
			if !e.IsDir() && !e.Type().IsRegular() || slices.Contains(x.Granted, p) {
				continue
			}
			if c.paths[p] = true; x.Closed(p) == "" {
				c.ids[idOf(unix.AT_FDCWD, p)] = true
			}
		}
	}
	delete(c.ids, guard.ID{}) // what has gone meanwhile
	return c
}

// holds says whether a name is covered, and whether that is because a directory above it is.
func (c covered) holds(n *name) (covered, above bool) {
	if len(c.paths) == 0 {
		return false, false
	}
	for _, is := range [...]func(p string) bool{ // the paths first: of some, no identity may be asked for
		func(p string) bool { return c.paths[p] },
		func(p string) bool { return c.ids[idOf(unix.AT_FDCWD, p)] },
	} {
		for p := n.abs(); within(p, n.root.Path); p = path.Dir(p) {
			if is(p) {
				return true, p != n.abs()
			}
		}
	}
	return false, false
}

// copyOf is what stands for a file that is not shown.
func (k *Carrier) copyOf(n *name) (text string, ok bool) {
	if k.InPlace != nil {
		text, ok = k.InPlace.Copies[n.abs()]
	}
	return text, ok
}

// handCopy hands what stands for a file over, to be read.
func (j *job) handCopy(text string) bool {
	only, err := names.Copy([]byte(text))
	if err != nil {
		return j.answer(errnoOf(err))
	}
	j.call.Hand(only, j.flags&unix.O_CLOEXEC != 0, false)
	return true
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

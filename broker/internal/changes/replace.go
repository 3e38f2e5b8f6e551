//go:build linux

package changes

import (
	"errors"

	"golang.org/x/sys/unix"
)

// errMoved says that the host's file is not the one that was compared.
var errMoved = errors.New("the host changed it just now; look again with sbx diff")

// replace exchanges the staged name with the host's, so that what was there can be looked at before it goes.
func (a *applier) replace(c *Change, dir int, name, temp string, in *intent) error {
	if c.Kind == Dir {
		a.late = append(a.late, *c)
	}
	staged, err := pin(dir, temp)
	if err != nil {
		return err
	}
	defer unix.Close(staged)
	if err := a.notePut(c, staged, in); err != nil {
		return err
	}
	err = rename(dir, temp, name, unix.RENAME_EXCHANGE)
	if err == unix.EINVAL || err == unix.ENOSYS { // a file system that cannot
		if err = a.without(c, dir, name, temp, in); err != nil {
			_ = removeAll(dir, temp)
		}
		return err
	}
	if err != nil {
		_ = removeAll(dir, temp)
		return err
	}
	if !a.asCompared(c, dir, temp, in) {
		if err := putBack(dir, temp, name, staged); err != nil {
			return err
		}
		_ = removeAll(dir, temp)
		return errMoved
	}
	return a.drop(dir, temp, in)
}

// notePut writes down which file takes the place of a directory. Of a directory nobody could tell after a kill whether
// it was compared, so it goes back, and that file must not be taken for somebody else's.
func (a *applier) notePut(c *Change, staged int, in *intent) error {
	if kindOf(&c.old) != Dir || c.Kind == Dir {
		return nil
	}
	put, err := stampAt(staged)
	if err != nil {
		return err
	}
	line := *in
	line.Put = &put
	return a.j.note(line)
}

// putBack exchanges the names again, until what was put at the host's is what comes back from there, or else somebody
// has saved something newer in between, which is to stay. mine is a descriptor, so that nothing newer has its number.
func putBack(dir int, temp, name string, mine int) error {
	for range 100 {
		put, err := pin(dir, temp)
		if err != nil {
			return err
		}
		defer unix.Close(put)
		err = rename(dir, temp, name, unix.RENAME_EXCHANGE)
		if err != nil || isSame(dir, temp, mine) {
			return err
		}
		mine = put
	}
	return errMoved
}

// pin opens whatever a name stands for, so that its number stays its own.
func pin(dir int, name string) (int, error) {
	return unix.Openat(dir, name, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
}

func isSame(dir int, name string, fd int) bool {
	var a, b unix.Stat_t
	return lstatAt(dir, name, &a) == nil && unix.Fstat(fd, &b) == nil && a.Dev == b.Dev && a.Ino == b.Ino
}

// drop removes what was compared. The journal has that first: of a directory nobody could tell it afterwards.
func (a *applier) drop(dir int, temp string, in *intent) error {
	seen := *in
	seen.Seen = true
	if err := a.j.note(seen); err != nil {
		return err
	}
	return removeAll(dir, temp)
}

// without replaces where names cannot be exchanged. A directory goes aside first: it is compared as a whole, and not
// removed at once.
func (a *applier) without(c *Change, dir int, name, temp string, in *intent) error {
	var st unix.Stat_t
	if lstatAt(dir, name, &st) != nil || !in.is(&st) {
		return errMoved
	}
	if kindOf(&st) != Dir && c.Kind != Dir {
		return rename(dir, temp, name, 0)
	}
	aside := *in
	aside.Temp += "-old"
	if err := a.j.note(aside); err != nil {
		return err
	}
	if err := a.remove(c, dir, name, string(aside.Temp), &aside); err != nil {
		return err
	}
	return rename(dir, temp, name, unix.RENAME_NOREPLACE)
}

// remove moves the host's name aside, looks at it, and removes it.
func (a *applier) remove(c *Change, dir int, name, temp string, in *intent) error {
	err := rename(dir, name, temp, unix.RENAME_NOREPLACE)
	if err == unix.ENOENT {
		return nil
	}
	if err != nil {
		return err
	}
	if !a.asCompared(c, dir, temp, in) {
		if err := rename(dir, temp, name, unix.RENAME_NOREPLACE); err != nil {
			return err
		}
		return errMoved
	}
	return a.drop(dir, temp, in)
}

// asCompared says whether what was moved to temp is what the person was shown.
func (a *applier) asCompared(c *Change, dir int, temp string, in *intent) bool {
	var st unix.Stat_t
	if lstatAt(dir, temp, &st) != nil || !in.is(&st) {
		return false
	}
	if kindOf(&st) != Dir {
		return true
	}
	s := scanner{l: c.layer, known: a.known}
	again := Change{old: st}
	s.below(&again, c.rel, dir, temp)
	return again.Risk == "" && again.Entries == c.Entries && (!again.Changed || a.opt.Force) &&
		a.known.noteLinked(a.opt.Dir, s.linked) == nil
}

func rename(dir int, from, to string, flags uint) error {
	err := unix.Renameat2(dir, from, dir, to, flags)
	if flags == unix.RENAME_NOREPLACE && (err == unix.EINVAL || err == unix.ENOSYS) {
		var st unix.Stat_t
		if lstatAt(dir, to, &st) == nil {
			return unix.EEXIST
		}
		return unix.Renameat(dir, from, dir, to)
	}
	return err
}

//go:build linux

package names

import (
	"golang.org/x/sys/unix"

	"sbx.example/sbx/broker/internal/guard"
	"sbx.example/sbx/broker/internal/host"
)

// Remove removes what has a name, a directory if dir says so, and may be seen.
func (k Keeper) Remove(n Name, dir bool) error {
	fd, st, err := k.Hold(n)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	switch isDir := st.Type == host.Dir; {
	case isDir && !dir:
		return unix.EISDIR
	case !isDir && dir:
		return unix.ENOTDIR
	}
	out, err := k.takeOut(n, fd)
	if err != nil {
		return err
	}
	if err := unix.Unlinkat(n.Dir, out, removal(st)); err != nil {
		k.putBack(n, n.Dir, out)
		return err
	}
	k.Ledger().Drop(st)
	return nil
}

// Rename moves what has a name to another one, as renameat2(2) does with flags. Either is a secret's, or both are;
// what may be done with the names by themselves was judged. What was moved to a name of a secret is the session's own.
func (k Keeper) Rename(from, to Name, flags uint) error {
	fd, err := k.source(from)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	if flags&unix.RENAME_EXCHANGE != 0 {
		return k.exchange(from, to, fd)
	}
	if to.Row == nil {
		return k.moveOut(from, to, fd, flags)
	}
	err = unix.Renameat2(from.Dir, from.Base, to.Dir, to.Base, flags|unix.RENAME_NOREPLACE)
	if err == unix.EEXIST && flags&unix.RENAME_NOREPLACE == 0 {
		err = k.replace(from, to, fd)
	}
	switch {
	case err != nil:
	case sameAs(to.Dir, to.Base, fd):
		k.Own(fd, to.Row)
	case from.Row != nil: // it is the host's, which nobody sees under either name
		k.putBack(from, to.Dir, to.Base)
		return unix.ENOENT
	}
	return err
}

// moveOut moves the object fd to a name that is no secret's. A secret's name is left for one that nobody looks for
// first: what the host puts under it meanwhile is never seen.
func (k Keeper) moveOut(from, to Name, fd int, flags uint) error {
	if from.Row == nil {
		return unix.Renameat2(from.Dir, from.Base, to.Dir, to.Base, flags)
	}
	out, err := k.takeOut(from, fd)
	if err != nil {
		return err
	}
	if err = unix.Renameat2(from.Dir, out, to.Dir, to.Base, flags); err != nil {
		k.putBack(from, from.Dir, out)
	}
	return err
}

// Move is renameat2(2). With free nothing had the new name, and what comes there meanwhile stays, where the file system
// can do that.
func Move(from, to Name, flags uint, free bool) error {
	if free && flags == 0 {
		err := unix.Renameat2(from.Dir, from.Base, to.Dir, to.Base, unix.RENAME_NOREPLACE)
		if err != unix.EINVAL {
			return err
		}
	}
	return unix.Renameat2(from.Dir, from.Base, to.Dir, to.Base, flags)
}

// MoveEmpty moves an empty directory by making another one: what somebody puts into it meanwhile does not come along.
// EXDEV says that it is not empty, or that the other name is taken by a directory.
func MoveEmpty(from, to Name, mode uint32, flags uint) error {
	err := MakeDir(to.Dir, to.Base, mode)
	if err == unix.EEXIST && flags&unix.RENAME_NOREPLACE == 0 {
		return unix.EXDEV
	}
	if err != nil {
		return err
	}
	if err = unix.Unlinkat(from.Dir, from.Base, unix.AT_REMOVEDIR); err != nil {
		_ = unix.Unlinkat(to.Dir, to.Base, unix.AT_REMOVEDIR)
	}
	if err == unix.ENOTEMPTY || err == unix.EEXIST {
		return unix.EXDEV
	}
	return err
}

// MayExchange says with which error two objects may not change places of which each may have the other's name. Of a
// file nobody asks whose it is.
func MayExchange(s *guard.Session, from, to Name) error {
	a, _ := IDAt(from.Dir, from.Base)
	b, _ := IDAt(to.Dir, to.Base)
	moved, other := Type(from.Dir, from.Base), Type(to.Dir, to.Base)
	theirs := func(n Name, id guard.ID) bool {
		dir, _ := ID(n.Dir)
		return !s.Own(id) && !s.Own(dir)
	}
	switch {
	case moved == unix.S_IFDIR && other == unix.S_IFDIR && s.Own(a) != s.Own(b):
		return unix.EXDEV // the session's own would be taken for what is not
	case moved == unix.S_IFLNK && other == unix.S_IFDIR && theirs(to, b),
		moved == unix.S_IFDIR && other == unix.S_IFLNK && theirs(from, a):
		return unix.EACCES // who knew the directory would follow the link
	}
	return nil
}

// source holds what is to be moved.
func (k Keeper) source(from Name) (int, error) {
	if from.Row == nil {
		return k.hold(from)
	}
	fd, _, err := k.Hold(from)
	return fd, err
}

// takeOut moves the object fd from its name to one that nobody looks for, so that it can be moved or removed from
// there. If the name has gone to another object meanwhile, that stays where it is.
func (k Keeper) takeOut(n Name, fd int) (out string, err error) {
	out = aside()
	if err := unix.Renameat2(n.Dir, n.Base, n.Dir, out, unix.RENAME_NOREPLACE); err != nil {
		return "", err
	}
	if !sameAs(n.Dir, out, fd) {
		k.putBack(n, n.Dir, out)
		return "", unix.ENOENT
	}
	return out, nil
}

// putBack gives what has the name out in dir its name back. If the host has used that since, its file stays, and the
// other one where nobody sees it.
func (k Keeper) putBack(n Name, dir int, out string) {
	if err := unix.Renameat2(dir, out, n.Dir, n.Base, unix.RENAME_NOREPLACE); err != nil && k.Stray != nil {
		k.Stray(n.Base, err)
	}
}

// replace moves the object fd to a name that something has which may be seen. The two change places first: had the host
// replaced that meanwhile, its file would be gone. Nor is a file of the host's taken from a secret's name.
func (k Keeper) replace(from, to Name, fd int) error {
	old, st, err := k.Hold(to)
	if err != nil {
		return unix.EEXIST
	}
	defer unix.Close(old)
	swap := func() error { return unix.Renameat2(from.Dir, from.Base, to.Dir, to.Base, unix.RENAME_EXCHANGE) }
	if err := swap(); err != nil {
		return err
	}
	err = unix.EEXIST
	if sameAs(from.Dir, from.Base, old) && (from.Row == nil || sameAs(to.Dir, to.Base, fd)) {
		err = unix.Unlinkat(from.Dir, from.Base, removal(st))
	}
	if err != nil {
		_ = swap()
		return err
	}
	k.Ledger().Drop(st)
	return nil
}

// exchange swaps the object fd and another one, which may both be seen.
func (k Keeper) exchange(from, to Name, fd int) error {
	other, err := k.hold(to)
	if err != nil {
		return err
	}
	defer unix.Close(other)
	if to.Row != nil {
		if _, err := k.Shown(to, other); err != nil {
			return unix.EACCES
		}
	}
	swap := func() error { return unix.Renameat2(from.Dir, from.Base, to.Dir, to.Base, unix.RENAME_EXCHANGE) }
	if err := swap(); err != nil {
		return err
	}
	if !sameAs(to.Dir, to.Base, fd) || !sameAs(from.Dir, from.Base, other) { // the host has put something else there
		_ = swap()
		return unix.EAGAIN
	}
	if to.Row != nil {
		k.Own(fd, to.Row)
	}
	if from.Row != nil {
		k.Own(other, from.Row)
	}
	return nil
}

// removal is how what a stamp is of is removed (unlinkat(2)).
func removal(st host.Stamp) int {
	if st.Type == host.Dir {
		return unix.AT_REMOVEDIR
	}
	return 0
}

package writes

import (
	"crypto/rand"
	"syscall"

	"golang.org/x/sys/unix"

	"sbx/broker/internal/guard"
	"sbx/broker/internal/host"
	"sbx/broker/internal/secrets"
)

// A name of a secret says nothing certain: what has it is judged as it was found, each time. What the session makes
// itself is its own. It is made, moved and removed so that what the host puts in the same place meanwhile is neither
// destroyed nor taken for the session's.

// finding judges the object behind an O_PATH descriptor, which has the name of a secret.
func (j *job) finding(n *name, fd int) (secrets.Finding, host.Stamp) {
	st, err := host.StampOf(fd, "")
	if err != nil || j.Secrets == nil {
		return secrets.Finding{Hidden: true, Because: secrets.Name}, st
	}
	return j.Secrets.Of(n.root.Granted, n.root.above+n.path(), secrets.Object{
		Stamp: st,
		Read: func(most int) ([]byte, error) {
			open, e := reopen(fd, unix.O_RDONLY|unix.O_NONBLOCK)
			if e != 0 {
				return nil, e
			}
			defer unix.Close(open)
			return host.PeekAt(open, 0, most)
		},
		Environment: func() bool {
			st, err := host.StampOf(fd, "pyvenv.cfg")
			return err == nil && st.Type == host.File
		},
	}), st
}

// shown says with which error what is behind a descriptor does not exist for the session; 0: it does.
func (j *job) shown(n *name, fd int) (host.Stamp, syscall.Errno) {
	f, st := j.finding(n, fd)
	switch {
	case !f.Hidden:
		return st, 0
	case f.Because == secrets.Modified: // git tracks it: to git it must not look as if it had been deleted
		return st, unix.EACCES
	}
	return st, unix.ENOENT
}

// holdShown holds what has the name of a secret, if it may be seen.
func (j *job) holdShown(n *name, dir int, base string) (fd int, st host.Stamp, e syscall.Errno) {
	fd, e = openAt(dir, nulled(base), unix.O_PATH|unix.O_NOFOLLOW, 0)
	if e != 0 {
		return -1, st, e
	}
	if st, e = j.shown(n, fd); e != 0 {
		unix.Close(fd)
		return -1, st, e
	}
	return fd, st, 0
}

// reopen opens what a descriptor is.
func reopen(fd, flags int) (int, syscall.Errno) {
	open, err := unix.Open(ownFd(fd)[:len(ownFd(fd))-1], flags&^unix.O_NOFOLLOW|unix.O_CLOEXEC|unix.O_NOCTTY, 0)
	if err != nil {
		return -1, err.(syscall.Errno)
	}
	return open, 0
}

// ledger is the record of what the session made, or nil.
func (j *job) ledger() *secrets.Ledger {
	if j.Secrets == nil {
		return nil
	}
	return j.Secrets.Own()
}

// keeping is called before the session changes the object that has a name, and what it returns afterwards: what was
// its own stays so.
func (j *job) keeping(dir int, base string, row *guard.Secret) func() {
	if j.ledger().Empty() {
		return func() {}
	}
	fd, e := openAt(dir, nulled(base), unix.O_PATH|unix.O_NOFOLLOW, 0)
	if e != 0 {
		return func() {}
	}
	keep := j.keepingObject(fd, row)
	return func() {
		keep()
		unix.Close(fd)
	}
}

// keepingObject is keeping for what a descriptor is.
func (j *job) keepingObject(fd int, row *guard.Secret) func() {
	l := j.ledger()
	if l.Empty() {
		return func() {}
	}
	st, err := host.StampOf(fd, "")
	if err != nil || !l.Has(st) {
		return func() {}
	}
	return func() { l.Hold(fd, row) }
}

// noteMade records what the session has just made under the name of a secret.
func (j *job) noteMade(dir int, base string, row *guard.Secret) {
	fd, e := openAt(dir, nulled(base), unix.O_PATH|unix.O_NOFOLLOW, 0)
	if e != 0 {
		return
	}
	j.ledger().Hold(fd, row)
	unix.Close(fd)
}

// occupied words the error of making a name of a secret that something has: what is hidden is not replaced, and that
// is said.
func (j *job) occupied(n *name, dir int, base string, e syscall.Errno) syscall.Errno {
	if e != unix.EEXIST {
		return e
	}
	fd, _, no := j.holdShown(n, dir, base)
	if no == 0 {
		unix.Close(fd)
		return e
	}
	j.say(Refusal{Path: n.abs(), Kept: true})
	return unix.EACCES
}

// openSecret opens a file that has the name of a secret, or makes it.
func (j *job) openSecret(n *name) (*name, bool) {
	dir, base, e := n.parent()
	if e != 0 {
		return j.again(n, e)
	}
	defer n.closeParent(dir)
	j.Making.Lock()
	defer j.Making.Unlock()
	flags, mode := j.flags&openKept, uint32(j.call.Arg(int(max(j.d.arg, 0))))&0o7777
	for try := 0; ; try++ {
		if flags&unix.O_CREAT != 0 {
			j.takeMask()
			fd, e := openAt(dir, nulled(base), flags|unix.O_EXCL, mode)
			if e == 0 {
				j.ledger().Hold(fd, guard.SecretOf(single(base), false))
				j.witness(n)
				j.call.Hand(fd, j.flags&unix.O_CLOEXEC != 0, j.alone(mode))
				return nil, true
			}
			if e != unix.EEXIST || flags&unix.O_EXCL != 0 {
				return nil, j.answer(j.occupied(n, dir, base, e))
			}
		}
		held, st, e := j.holdShown(n, dir, base)
		if e == unix.ENOENT && flags&unix.O_CREAT != 0 {
			if no := j.occupied(n, dir, base, unix.EEXIST); no == unix.EACCES || try > 3 {
				return nil, j.answer(unix.EACCES)
			}
			continue // it has gone since
		}
		if e != 0 {
			return nil, j.answer(e)
		}
		defer unix.Close(held)
		if st.Type == host.Link {
			return nil, j.answer(unix.ELOOP)
		}
		fd, e := reopen(held, int(flags&^(unix.O_CREAT|unix.O_EXCL)))
		if e != 0 {
			return nil, j.answer(e)
		}
		j.ledger().Hold(fd, guard.SecretOf(single(base), false))
		j.witness(n)
		j.call.Hand(fd, j.flags&unix.O_CLOEXEC != 0, j.alone(0o111))
		return nil, true
	}
}

// takeOut moves the object fd from its name to one that nobody looks for, so that it can be moved or removed from
// there. If the name has gone to another object meanwhile, that stays where it is.
func takeOut(dir int, base string, fd int) (aside string, e syscall.Errno) {
	aside = reserved + rand.Text() + "\x00"
	if e := at2(unix.SYS_RENAMEAT2, dir, nulled(base), dir, nulled(aside), unix.RENAME_NOREPLACE); e != 0 {
		return "", e
	}
	if !sameAs(dir, aside, fd) {
		putBack(dir, aside, base)
		return "", unix.ENOENT
	}
	return aside, 0
}

// putBack undoes takeOut. If the host has used the name since, its file stays.
func putBack(dir int, aside, base string) {
	_ = at2(unix.SYS_RENAMEAT2, dir, nulled(aside), dir, nulled(base), unix.RENAME_NOREPLACE)
}

func sameAs(dir int, base string, fd int) bool {
	var a, b unix.Stat_t
	known := statAt(dir, nulled(base), &a, unix.AT_SYMLINK_NOFOLLOW) == 0 && unix.Fstat(fd, &b) == nil
	return known && a.Dev == b.Dev && a.Ino == b.Ino
}

// removeSecret removes what has the name of a secret and may be seen.
func (j *job) removeSecret(n *name, dir int, base string) syscall.Errno {
	fd, st, e := j.holdShown(n, dir, base)
	if e != 0 {
		return e
	}
	defer unix.Close(fd)
	var flags uintptr
	switch isDir := st.Type == host.Dir; {
	case isDir && !j.removesDir():
		return unix.EISDIR
	case !isDir && j.removesDir():
		return unix.ENOTDIR
	case isDir:
		flags = unix.AT_REMOVEDIR
	}
	aside, e := takeOut(dir, single(base)+"\x00", fd)
	if e != 0 {
		return e
	}
	if e := at1(unix.SYS_UNLINKAT, dir, nulled(aside), flags, 0, 0); e != 0 {
		putBack(dir, aside, single(base)+"\x00")
		return e
	}
	j.ledger().Drop(st)
	return 0
}

// renameSecret moves an object of which the old name or the new one is a secret's; what may be done with the names by
// themselves was judged.
func (j *job) renameSecret(p *pair, from, to *guard.Secret) syscall.Errno {
	j.Making.Lock()
	defer j.Making.Unlock()
	base, target := single(p.fromBase)+"\x00", single(p.toBase)+"\x00"
	fd, e := -1, syscall.Errno(0)
	if from == nil {
		fd, e = openAt(p.fromDir, nulled(base), unix.O_PATH|unix.O_NOFOLLOW, 0)
	} else {
		fd, _, e = j.holdShown(p.from, p.fromDir, base)
	}
	if e != 0 {
		return e
	}
	defer unix.Close(fd)
	if p.flags&unix.RENAME_EXCHANGE != 0 {
		return j.exchangeSecret(p, fd, base, target, from, to)
	}
	aside := base
	if from != nil {
		if aside, e = takeOut(p.fromDir, base, fd); e != 0 {
			return e
		}
	}
	flags := uintptr(p.flags)
	if to != nil {
		flags |= unix.RENAME_NOREPLACE
	}
	e = at2(unix.SYS_RENAMEAT2, p.fromDir, nulled(aside), p.toDir, nulled(target), flags)
	if to != nil && e == unix.EEXIST && p.flags&unix.RENAME_NOREPLACE == 0 {
		e = j.replaceShown(p, aside, target)
	}
	if e != 0 && from != nil {
		putBack(p.fromDir, aside, base)
	}
	if e == 0 && to != nil && sameAs(p.toDir, target, fd) {
		j.ledger().Hold(fd, to)
	}
	if to != nil {
		e = j.occupied(p.to, p.toDir, target, e)
	}
	return e
}

// replaceShown moves an object to the name of a secret that something has which may be seen. The two change places
// first: had the host replaced that meanwhile, its file would be gone.
func (j *job) replaceShown(p *pair, from, target string) syscall.Errno {
	old, st, e := j.holdShown(p.to, p.toDir, target)
	if e != 0 {
		return unix.EEXIST
	}
	defer unix.Close(old)
	if e := at2(unix.SYS_RENAMEAT2, p.fromDir, nulled(from), p.toDir, nulled(target), unix.RENAME_EXCHANGE); e != 0 {
		return e
	}
	var flags uintptr
	if st.Type == host.Dir {
		flags = unix.AT_REMOVEDIR
	}
	e = unix.EEXIST
	if sameAs(p.fromDir, from, old) {
		e = at1(unix.SYS_UNLINKAT, p.fromDir, nulled(from), flags, 0, 0)
	}
	if e != 0 {
		_ = at2(unix.SYS_RENAMEAT2, p.fromDir, nulled(from), p.toDir, nulled(target), unix.RENAME_EXCHANGE)
		return e
	}
	j.ledger().Drop(st)
	return 0
}

// exchangeSecret swaps two objects that may both be seen.
func (j *job) exchangeSecret(p *pair, fd int, base, target string, from, to *guard.Secret) syscall.Errno {
	other, e := openAt(p.toDir, nulled(target), unix.O_PATH|unix.O_NOFOLLOW, 0)
	if e != 0 {
		return e
	}
	defer unix.Close(other)
	if to != nil {
		if _, e := j.shown(p.to, other); e != 0 {
			return unix.EACCES
		}
	}
	if e := at2(unix.SYS_RENAMEAT2, p.fromDir, nulled(base), p.toDir, nulled(target), unix.RENAME_EXCHANGE); e != 0 {
		return e
	}
	if !sameAs(p.toDir, target, fd) || !sameAs(p.fromDir, base, other) { // the host has put something else there
		_ = at2(unix.SYS_RENAMEAT2, p.fromDir, nulled(base), p.toDir, nulled(target), unix.RENAME_EXCHANGE)
		return unix.EAGAIN
	}
	if to != nil {
		j.ledger().Hold(fd, to)
	}
	if from != nil {
		j.ledger().Hold(other, from)
	}
	return 0
}

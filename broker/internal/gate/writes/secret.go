//go:build linux

package writes

import (
	"syscall"

	"golang.org/x/sys/unix"

	"sbx.example/sbx/broker/internal/gate/names"
	"sbx.example/sbx/broker/internal/guard"
	"sbx.example/sbx/broker/internal/host"
)

// keeper is what is known of the session's secrets.
func (k *Carrier) keeper() names.Keeper { return names.Keeper{Judge: k.Secrets, OneMount: true} }

// named is a name whose directory is held, for the keeper.
func named(n *name, dir int, base string, row *guard.Secret) names.Name {
	below := func() string { return n.root.above + n.path() }
	return names.Name{Dir: dir, Base: single(base), Top: n.root.Granted, Path: below, Row: row}
}

// occupied words the error of making a name of a secret that something has: what is hidden is not replaced, and that
// is said.
func (j *job) occupied(n *name, c names.Name, e syscall.Errno) syscall.Errno {
	if e != unix.EEXIST || j.keeper().Shows(c) {
		return e
	}
	j.say(Refusal{Path: n.onHost(), Kept: true})
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
	j.witness(n)
	flags, mode := j.flags&openKept, uint32(j.call.Arg(int(max(j.d.arg, 0))))&0o7777
	k, c := j.keeper(), named(n, dir, base, guard.SecretOf(single(base), false))
	for try := 0; ; try++ {
		if flags&unix.O_CREAT != 0 {
			j.takeMask()
			fd, e := openAt(dir, nulled(base), flags|unix.O_EXCL, mode)
			if e == 0 {
				k.Own(fd, c.Row)
				j.call.Hand(fd, j.flags&unix.O_CLOEXEC != 0, j.alone(mode))
				return nil, true
			}
			if e != unix.EEXIST || flags&unix.O_EXCL != 0 {
				return nil, j.answer(j.occupied(n, c, e))
			}
		}
		held, st, err := k.Hold(c)
		if err == unix.ENOENT && flags&unix.O_CREAT != 0 {
			if no := j.occupied(n, c, unix.EEXIST); no == unix.EACCES || try > 3 {
				return nil, j.answer(unix.EACCES)
			}
			continue // it has gone since
		}
		if err != nil {
			return nil, j.answer(errnoOf(err))
		}
		defer unix.Close(held)
		if st.Type == host.Link {
			return nil, j.answer(unix.ELOOP)
		}
		fd, err := names.Reopen(held, int(flags&^(unix.O_CREAT|unix.O_EXCL|unix.O_NOFOLLOW))|unix.O_NOCTTY)
		if err != nil {
			return nil, j.answer(errnoOf(err))
		}
		k.Own(fd, c.Row)
		j.call.Hand(fd, j.flags&unix.O_CLOEXEC != 0, j.alone(0o111))
		return nil, true
	}
}

// renameSecret moves an object of which the old name or the new one is a secret's; what may be done with the names by
// themselves was judged.
func (j *job) renameSecret(p *pair, from, to *guard.Secret) syscall.Errno {
	j.Making.Lock()
	defer j.Making.Unlock()
	target := named(p.to, p.toDir, p.toBase, to)
	e := errnoOf(j.keeper().Rename(named(p.from, p.fromDir, p.fromBase, from), target, uint(p.flags)))
	if to != nil && p.flags&unix.RENAME_EXCHANGE == 0 {
		e = j.occupied(p.to, target, e)
	}
	return e
}

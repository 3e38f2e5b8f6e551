//go:build linux

package writes

import (
	"path"
	"strings"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"

	"sbx.example/sbx/broker/internal/gate/names"
	"sbx.example/sbx/broker/internal/guard"
)

// one carries out a call that makes or removes one name.
func (j *job) one() bool {
	n := j.named(j.d.dir, j.d.path, j.mem[0][:], false)
	for range maxLinks {
		if n == nil || j.theirs(n) {
			return j.elsewhere()
		}
		if j.stands(n) {
			j.pass()
			return true
		}
		v, no := j.mayChange(n)
		e := no
		if no == 0 {
			j.witness(n)
			e = j.making(n, func(n *name) syscall.Errno { return j.change(n, v) })
		}
		if e == 0 || no == 0 && e != unix.ELOOP && e != unix.EXDEV {
			return j.answer(e)
		}
		where := j.straight(n.abs(), n.slash, false)
		switch {
		case where == nil || where.rel != n.rel:
			n = where
		case e == unix.ELOOP && no == 0:
			return j.answer(e)
		case no == 0:
			return j.refuse(n, v, unix.EROFS)
		default:
			return j.refuse(n, v, no)
		}
	}
	return j.answer(unix.ELOOP)
}

// stands says whether a name is a tree's own, or one on which something else is mounted: the kernel knows what to say
// of those.
func (k *Carrier) stands(n *name) bool {
	at, ok := k.at[n.abs()]
	return ok && !at.native && k.lies(at)
}

// mayChange asks about what a call with one name does.
func (j *job) mayChange(n *name) (ruling, syscall.Errno) {
	g := &n.root.judge
	r := g.of(n)
	switch {
	case j.d.kind == kindRemove:
		return r, g.mayTake(n, j.removesDir())
	case j.d.op == "mkdir":
		return r, g.mayMake(n, r, byMkdir)
	case j.d.kind == kindSymlink:
		size, e := j.call.Path(int(j.d.arg), j.mem[1][:])
		if e != 0 {
			return r, e
		}
		return r, g.mayLink(n, r, string(j.mem[1][:size-1]))
	}
	return r, g.mayMake(n, r, byOther)
}

func (j *job) removesDir() bool {
	return j.d.op == "rmdir" || j.flags&unix.AT_REMOVEDIR != 0
}

// change does to one name, in its directory, what the call wanted.
func (j *job) change(n *name, r ruling) syscall.Errno {
	dir, base, e := n.parent()
	if e != 0 {
		return e
	}
	defer n.closeParent(dir)
	if j.d.kind == kindRemove {
		return j.remove(n, r, dir, base)
	}
	mode := uintptr(uint32(j.call.Arg(int(max(j.d.arg, 0)))))
	if r.Secret != nil {
		j.Making.Lock()
		defer j.Making.Unlock()
	}
	switch {
	case j.d.op == "mkdir":
		j.takeMask()
		if e = at1(unix.SYS_MKDIRAT, dir, nulled(base), mode, 0, 0); e == 0 {
			j.madeDir(r, dir, base)
		}
	case j.d.kind == kindMake:
		j.takeMask()
		e = at1(unix.SYS_MKNODAT, dir, nulled(base), mode, uintptr(j.call.Arg(int(j.d.arg)+1)), 0)
	default: // what the link says was read when it was judged
		e = symlinkAt(j.mem[1][:], dir, nulled(base))
	}
	return j.made(named(n, dir, base, r.Secret), n, e)
}

// made records what was made under the name of a secret, or words why it was not.
func (j *job) made(c names.Name, n *name, e syscall.Errno) syscall.Errno {
	switch {
	case c.Row == nil:
	case e == 0:
		j.keeper().OwnName(c)
	default:
		return j.occupied(n, c, e)
	}
	return e
}

// remove takes a name away, in its directory.
func (j *job) remove(n *name, r ruling, dir int, base string) syscall.Errno {
	if !j.removesDir() {
		c := named(n, dir, base, r.Secret)
		if r.Secret != nil {
			return errnoOf(j.keeper().Remove(c, false))
		}
		defer j.keeper().KeepingName(c)()
		return at1(unix.SYS_UNLINKAT, dir, nulled(base), 0, 0, 0)
	}
	id := idOf(dir, single(base))
	e := syscall.Errno(0)
	if r.Secret != nil {
		e = errnoOf(j.keeper().Remove(named(n, dir, base, r.Secret), true))
	} else {
		e = at1(unix.SYS_UNLINKAT, dir, nulled(base), unix.AT_REMOVEDIR, 0, 0)
	}
	if e == 0 {
		j.Session.Removed(idOf(dir, ""), single(base), id)
		j.left(n, dir, base)
	}
	return e
}

// madeDir remembers a directory that the session has made.
func (j *job) madeDir(r ruling, dir int, base string) {
	j.Session.Mkdir(r.place, r.Verdict, idOf(dir, ""), single(base), idOf(dir, single(base)))
}

// single is a last part without slashes and its NUL.
func single(base string) string { return strings.TrimRight(base, "/\x00") }

// pair is what a call with two names needs.
type pair struct {
	from, to       *name
	fromDir, toDir int
	fromBase       string
	toBase         string
	flags          uint64
	free           func() // lets others judge again
}

// two carries out rename and link.
func (j *job) two() bool {
	p := &pair{flags: j.flags}
	sizes, errs := j.call.Paths(int(j.d.path), int(j.d.path2), [2][]byte{j.mem[0][:], j.mem[1][:]})
	if j.d.kind == kindLink && errs[0] == 0 {
		if fd, ok := j.nameless(string(j.mem[0][:sizes[0]-1])); ok {
			defer unix.Close(fd)
			return j.linkNameless(fd)
		}
	}
	p.from = j.said(j.d.dir, j.mem[0][:], sizes[0], errs[0], j.d.followed(j.flags))
	p.to = j.said(j.d.dir2, j.mem[1][:], sizes[1], errs[1], false)
	for range maxLinks {
		switch {
		case (p.from == nil || j.theirs(p.from)) && (p.to == nil || j.theirs(p.to)) && !j.unlike(p):
			return j.elsewhere()
		case p.from == nil || p.to == nil || p.from.root != p.to.root:
			return j.across(p)
		}
		if p.free = j.exclude(p); p.free == nil {
			return j.answer(unix.EXDEV)
		}
		e, done := j.move(p)
		if p.free(); done {
			return true
		}
		if e != unix.ELOOP && e != unix.EXDEV {
			return j.answer(e)
		}
		from, to := j.straight(p.from.abs(), p.from.slash, j.d.followed(j.flags)), j.straight(p.to.abs(), p.to.slash, false)
		if from != nil && to != nil && from.rel == p.from.rel && to.rel == p.to.rel {
			return j.answer(e)
		}
		p.from, p.to = from, to
	}
	return j.answer(unix.ELOOP)
}

// exclude keeps those who serve the place of either name from judging meanwhile: what was looked through would get
// another name that is guarded, and what was judged could be exchanged for a directory. Nil: they cannot be waited for.
func (j *job) exclude(p *pair) (free func()) {
	var held []func()
	free = sync.OnceFunc(func() {
		for _, f := range held {
			f()
		}
	})
	var last Server
	for _, n := range [...]*name{p.from, p.to} {
		if j.Server == nil || !j.served(n) {
			continue
		}
		s := j.Server(path.Dir(n.abs()))
		if s == nil || s == last {
			continue
		}
		f := s.Alone()
		if f == nil {
			free()
			return nil
		}
		held, last = append(held, f), s
	}
	return free
}

// unlike says whether a directory in a served place gets a name under which other names would be hidden in it. What it
// holds is looked through here; its server would refuse in any case.
func (j *job) unlike(p *pair) bool {
	if j.d.kind != kindRename || p.from == nil || p.to == nil || p.from.root != p.to.root {
		return false
	}
	g := &p.from.root.judge
	from, _ := p.from.split()
	to, _ := p.to.split()
	var st unix.Stat_t
	return statAt(g.tree, nulled(p.from.rel), &st, unix.AT_SYMLINK_NOFOLLOW) == 0 && typeOf(st) == unix.S_IFDIR &&
		g.shows(from) && g.shows(to) && !g.below(p.from).Alike(g.below(p.to))
}

// across is for a call with names in two trees: a rename the kernel refuses by itself, a link would be refused for
// another reason.
func (j *job) across(p *pair) bool {
	if j.Shared && (p.from == nil || p.to == nil) {
		return false
	}
	if j.d.kind == kindLink || j.InPlace != nil { // no mount says so there, and mv copies
		return j.answer(unix.EXDEV)
	}
	j.pass()
	return true
}

// move judges and carries out a rename or link within one tree. It says whether the call was answered.
func (j *job) move(p *pair) (e syscall.Errno, done bool) {
	if j.stands(p.from) || j.stands(p.to) {
		j.pass()
		return 0, true
	}
	for _, n := range [...]*name{p.from, p.to} { // nor does an error say what is there
		if r := n.root.judge.of(n); r.away {
			return 0, j.refuse(n, r, unix.ENOENT)
		}
	}
	if j.d.kind == kindLink {
		free := j.turn(p.to)
		if free == nil {
			return 0, j.answer(unix.EAGAIN)
		}
		defer free()
	}
	if p.fromDir, p.fromBase, e = p.from.parent(); e != 0 {
		return e, false
	}
	defer p.from.closeParent(p.fromDir)
	if dir, base := p.to.split(); p.from.in(dir) && !p.to.slash {
		p.toDir, p.toBase = p.fromDir, base+"\x00"
	} else if p.toDir, p.toBase, e = p.to.parent(); e != 0 {
		return e, false
	} else {
		defer p.to.closeParent(p.toDir)
	}
	if j.d.kind == kindLink {
		return j.link(p)
	}
	return j.rename(p)
}

// link gives a file a second name. What is guarded gets none: it could be written by that one.
func (j *job) link(p *pair) (syscall.Errno, bool) {
	var st unix.Stat_t
	if e := statAt(p.fromDir, nulled(p.fromBase), &st, unix.AT_SYMLINK_NOFOLLOW); e != 0 {
		return e, false
	}
	if st.Mode&unix.S_IFMT == unix.S_IFLNK && j.d.followed(j.flags) {
		return unix.ELOOP, false
	}
	if typeOf(st) == unix.S_IFSOCK && !j.Sockets.Has(idOf(p.fromDir, single(p.fromBase))) {
		return unix.EPERM, false // what covers a socket of the host's covers one name
	}
	g := &p.from.root.judge
	from, to := g.of(p.from), g.of(p.to)
	no := mayWrite(from)
	if from.Action == guard.Keep {
		no = unix.EROFS
	}
	if no == 0 {
		no = g.seen(p.from)
	}
	if no != 0 {
		return 0, j.refuse(p.from, from, no)
	}
	if no = g.mayMake(p.to, to, byOther); no == 0 && typeOf(st) == unix.S_IFLNK {
		no = g.mayTakeLink(p.to, to, p.fromDir, p.fromBase)
	}
	if no != 0 {
		return 0, j.refuse(p.to, to, no)
	}
	source, target := named(p.from, p.fromDir, p.fromBase, from.Secret), named(p.to, p.toDir, p.toBase, to.Secret)
	if to.Secret != nil {
		j.Making.Lock()
		defer j.Making.Unlock()
	}
	j.witness(p.from) // by the new name, as well
	j.witness(p.to)
	keep := j.keeper().KeepingName(source)
	e := at2(unix.SYS_LINKAT, p.fromDir, nulled(p.fromBase), p.toDir, nulled(p.toBase), 0)
	if e == 0 && j.swapped(p.to, p.toDir, p.toBase, &st) {
		at1(unix.SYS_UNLINKAT, p.toDir, nulled(p.toBase), 0, 0, 0)
		e = unix.EXDEV
	}
	keep()
	e = j.made(target, p.to, e)
	if e == unix.ELOOP || e == unix.EXDEV {
		return 0, j.answer(e)
	}
	return e, e == 0 && j.answer(0)
}

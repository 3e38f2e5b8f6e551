//go:build linux

package writes

import (
	"crypto/rand"
	"errors"
	"io"
	"os"
	"path"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"sbx.example/sbx/broker/internal/gate/names"
	"sbx.example/sbx/broker/internal/guard"
)

// rename moves, replaces or exchanges names.
func (j *job) rename(p *pair) (syscall.Errno, bool) {
	var moved, other unix.Stat_t
	if e := objectAt(p.fromDir, p.fromBase, &moved); e != 0 {
		return e, false
	}
	exchange := p.flags&unix.RENAME_EXCHANGE != 0
	done := j.still(p, &moved)
	if done == nil {
		return 0, j.answer(unix.EXDEV)
	}
	defer done()
	replaced := objectAt(p.toDir, p.toBase, &other) == 0
	if exchange && !replaced { // whatever may be moved: with nothing it is not exchanged
		if e := statAt(p.toDir, nulled(single(p.toBase)+"\x00"), &other, unix.AT_SYMLINK_NOFOLLOW); e != 0 {
			return e, false
		}
	}
	g := &p.from.root.judge
	var demote []guard.ID
	n, v, e := j.mayMove(p.fromDir, p.fromBase, p.from, p.to, &moved, &demote)
	if e == unix.EROFS && n == p.to && v.Action.Checked() && !exchange {
		return 0, j.replaceChecked(p, v, &moved)
	}
	if e == 0 && replaced && exchange {
		n, v, e = j.mayMove(p.toDir, p.toBase, p.to, p.from, &other, &demote)
	} else if e == 0 && replaced && g.of(p.to).Action != guard.Keep {
		n, v = p.to, g.of(p.to)
		e = mayGo(v, typeOf(other) == unix.S_IFDIR)
	}
	moves := false
	if e == 0 { // before it is moved: nobody is to make a name in it there meanwhile that is guarded
		undo := j.Session.Demote(demote)
		defer func() {
			if !moves {
				undo()
			}
		}()
	}
	if e == 0 && exchange {
		e = errnoOf(names.MayExchange(j.Session, named(p.from, p.fromDir, p.fromBase, nil),
			named(p.to, p.toDir, p.toBase, nil)))
	}
	if e != 0 { // EXDEV: mv copies, and the copies are judged one by one
		if e == unix.EROFS || e == unix.ENOENT || e == unix.EACCES {
			j.tell(n, v.Why, e)
		}
		return 0, j.answer(e)
	}
	left := j.leaving(p, moved, other, replaced)
	e = j.carryJudged(p, &moved, &other)
	if e == unix.ELOOP || e == unix.EXDEV {
		return 0, j.answer(e)
	}
	if moves = e == 0; moves {
		left()
		p.free()
		j.left(p.from, p.fromDir, p.fromBase)
		j.left(p.to, p.toDir, p.toBase)
	}
	return e, e == 0 && j.answer(0)
}

// still has nobody else judge a rename meanwhile, nor another session where directories move, or where what may be done
// depends on where they are. What is moved is looked at again then. Nil: that cannot be had, or a directory is
// elsewhere by now.
func (j *job) still(p *pair, moved *unix.Stat_t) (done func()) {
	turn := typeOf(*moved) == unix.S_IFDIR || p.flags&unix.RENAME_EXCHANGE != 0 || p.to.contended() ||
		p.from.root.judge.of(p.to).Action.Checked()
	if done = j.Session.Alone(turn); done == nil || !turn {
		return done
	}
	if !p.from.isIn(p.fromDir) || !p.to.isIn(p.toDir) || objectAt(p.fromDir, p.fromBase, moved) != 0 {
		done()
		return nil
	}
	p.from.ruled, p.to.ruled = nil, nil
	return done
}

// carryRename does what was judged.
func (j *job) carryRename(p *pair) syscall.Errno {
	f, t := p.from.root.judge.of(p.from), p.from.root.judge.of(p.to)
	if f.Secret != nil || t.Secret != nil {
		return j.renameSecret(p, f.Secret, t.Secret)
	}
	defer j.keeper().KeepingName(named(p.from, p.fromDir, p.fromBase, nil))()
	defer j.keeper().KeepingName(named(p.to, p.toDir, p.toBase, nil))()
	return at2(unix.SYS_RENAMEAT2, p.fromDir, nulled(p.fromBase), p.toDir, nulled(p.toBase), uintptr(p.flags))
}

// carryJudged is carryRename for what was judged alone.
func (j *job) carryJudged(p *pair, moved, other *unix.Stat_t) syscall.Errno {
	e := j.carryRename(p)
	if e == 0 && (j.swapped(p.to, p.toDir, p.toBase, moved) ||
		p.flags&unix.RENAME_EXCHANGE != 0 && j.swapped(p.from, p.fromDir, p.fromBase, other)) {
		return j.takeBack(p)
	}
	return e
}

// swapped says whether what got a name is not what was judged: another session has put a directory or a link in its
// place meanwhile. Of a link it counts what it says.
func (k *Carrier) swapped(n *name, dir int, base string, judged *unix.Stat_t) bool {
	var now unix.Stat_t
	if statAt(dir, nulled(single(base)+"\x00"), &now, unix.AT_SYMLINK_NOFOLLOW) != 0 {
		return false
	}
	switch g := &n.root.judge; typeOf(now) {
	case unix.S_IFDIR:
		return now.Dev != judged.Dev || now.Ino != judged.Ino
	case unix.S_IFLNK:
		return g.mayTakeLink(n, g.of(n), dir, base) != 0
	}
	return false
}

// takeBack undoes a rename of what was not judged. EXDEV makes mv copy, and the copies are judged one by one.
func (k *Carrier) takeBack(p *pair) syscall.Errno {
	to, from := nulled(single(p.toBase)+"\x00"), nulled(single(p.fromBase)+"\x00")
	flags := uintptr(p.flags & unix.RENAME_EXCHANGE)
	if flags == 0 {
		flags = unix.RENAME_NOREPLACE
	}
	if at2(unix.SYS_RENAMEAT2, p.toDir, to, p.fromDir, from, flags) != 0 { // the old name has been taken meanwhile
		away := nulled(names.Reserved + rand.Text() + "\x00") // out of sight
		at2(unix.SYS_RENAMEAT2, p.toDir, to, p.toDir, away, 0)
	}
	return unix.EXDEV
}

// leaving tells of both names, and notes, when a rename has been done, which directories have left theirs.
func (j *job) leaving(p *pair, moved, other unix.Stat_t, replaced bool) func() {
	j.witness(p.from)
	j.witness(p.to)
	if typeOf(moved) != unix.S_IFDIR && (!replaced || typeOf(other) != unix.S_IFDIR) {
		return func() {}
	}
	from, to := idOf(p.fromDir, single(p.fromBase)), idOf(p.toDir, single(p.toBase))
	return func() {
		if typeOf(moved) == unix.S_IFDIR {
			j.noteGone(p.fromDir, p.fromBase, p.from, from, p.toDir, p.toBase)
		}
		if !replaced || typeOf(other) != unix.S_IFDIR {
			return
		}
		if dir := idOf(p.toDir, ""); p.flags&unix.RENAME_EXCHANGE != 0 {
			j.noteGone(p.toDir, p.toBase, p.to, to, p.fromDir, p.fromBase)
		} else {
			j.Session.Removed(dir, single(p.toBase), to)
		}
	}
}

// objectAt looks at what has a name. Of a link with a slash behind it that is the link: the kernel moves neither that
// nor where it leads.
func objectAt(dir int, base string, st *unix.Stat_t) syscall.Errno {
	e := statAt(dir, nulled(base), st, unix.AT_SYMLINK_NOFOLLOW)
	if name := single(base); e == 0 && strings.HasPrefix(base[len(name):], "/") {
		e = statAt(dir, nulled(name+"\x00"), st, unix.AT_SYMLINK_NOFOLLOW)
	}
	return e
}

// left has the server of a name forget it, and what is mounted there is mounted no more: all of it is served then.
func (j *job) left(n *name, dir int, base string) {
	if j.Server != nil && j.served(n) {
		if s := j.Server(n.abs()); s != nil {
			s.Left(idOf(dir, ""), single(base))
		}
	}
	for p, at := range j.at {
		if at.native && within(p, n.abs()) {
			delete(j.at, p)
		}
	}
}

// noteGone notes that a directory has left a name for another.
func (j *job) noteGone(dir int, base string, n *name, id guard.ID, toDir int, toBase string) {
	j.Session.Left(idOf(dir, ""), single(base), id, func() bool {
		return names.Free(toDir, single(toBase), n.root.judge.below(n))
	})
}

// mayMove says whether an object may leave one name for another, or which of the two forbids it. A directory takes
// everything below it along, so both places must treat every path below alike. What is the session's own and is not
// there any more is added to demote.
func (j *job) mayMove(fromDir int, fromBase string, from, to *name, st *unix.Stat_t,
	demote *[]guard.ID) (*name, ruling, syscall.Errno) {
	g := &from.root.judge
	dir := typeOf(*st) == unix.S_IFDIR
	f, t := g.of(from), g.of(to)
	if e := g.mayTake(from, dir); e != 0 {
		return from, f, e
	}
	if dir && f.Anchored && from.path() != to.path() || dir && j.pins(from.abs()) {
		return from, f, unix.EBUSY
	}
	if typeOf(*st) == unix.S_IFLNK {
		return to, t, g.mayTakeLink(to, t, fromDir, fromBase)
	}
	if e := g.mayMake(to, t, byMove); e != 0 {
		return to, t, e
	}
	if !dir {
		return nil, ruling{}, 0
	}
	if j.leavesMount(from, to) || j.served(from) && !j.served(to) && !g.holdsNone(from) {
		return from, f, unix.EXDEV
	}
	_, base := from.split()
	id := idOf(fromDir, base)
	takes := g.takes(to, id)
	if takes {
		names.Come(j.Session.Witness, fromDir, base, to.root.above+to.path(), to.onHost())
	}
	if j.Session.Own(id) {
		return from, f, g.mayMoveOwn(fromDir, fromBase, from, to, t, takes, demote)
	}
	return from, f, g.mayMoveTheirs(fromDir, from, to, takes, demote)
}

// takes says whether a directory gets to where one was before that is not the session's own, or where one is looked
// for.
func (g *judge) takes(to *name, id guard.ID) bool {
	up, base := to.split()
	dir := g.id(up)
	if g.session.Takes(dir, path.Dir(to.onHost()), base, id) {
		return true
	}
	var there unix.Stat_t
	if g.session.Own(dir) || statAt(g.tree, nulled(to.rel), &there, unix.AT_SYMLINK_NOFOLLOW) != 0 ||
		typeOf(there) != unix.S_IFDIR {
		return false
	}
	other := g.id(to.path())
	return other != id && !g.session.Own(other)
}

// mayMoveTheirs says whether a directory that is not the session's own may get another name. What the session made in
// it may be: that, and what is in a repository's directory, was judged for the place where it is.
func (g *judge) mayMoveTheirs(fromDir int, from, to *name, takes bool, demote *[]guard.ID) syscall.Errno {
	a, b := g.below(from), g.below(to)
	alike := a.Alike(b)
	if !takes {
		demote = nil
	}
	_, base := from.split()
	switch {
	case !alike && (a.Git() || b.Git()):
		return unix.EXDEV
	case !alike || takes || b.Git() || a.Chosen():
		if !g.suits(from.path(), a, b, demote) {
			return unix.EXDEV
		}
	case names.LeadsOut(fromDir, base):
		return unix.EXDEV
	}
	return 0
}

// mayMoveOwn says whether the session's own directory may get another name. Where it takes the place of one that is not
// the session's it has to be without names that are guarded, and is then guarded like that; else EXDEV makes mv copy,
// and the copies are judged one by one. So has one that leaves a directory of packages, where those names are free.
func (g *judge) mayMoveOwn(fromDir int, fromBase string, from, to *name, t ruling, takes bool,
	demote *[]guard.ID) syscall.Errno {
	up, _ := to.split()
	if !g.session.Own(g.id(up)) && !t.place.Ordinary() {
		return unix.EXDEV
	}
	a, b := g.below(from), g.below(to)
	if g.keeper.Reveals(names.Leaving{Dir: fromDir, Base: single(fromBase), Top: from.root.Granted,
		Path: from.root.above + from.path(), From: a, To: b, Own: g.session.Own}) {
		return unix.EXDEV // of what is not the session's own in it
	}
	if !takes {
		if !b.Unpacks(a) {
			return 0
		}
		demote = nil
	}
	if !g.suits(from.path(), a, b, demote) {
		return unix.EXDEV
	}
	return 0
}

// maxMoved bounds the search in a directory that moves to where names are treated otherwise.
const maxMoved = 20000

// suits says whether nothing below a directory is special in its place or would be in another, nor a secret in the one
// and none in the other. What its files say of repositories is not asked: a HEAD is special everywhere.
func (g *judge) suits(dir string, from, to *guard.Place, ids *[]guard.ID) bool {
	left := maxMoved
	fd, e := openAt(g.tree, []byte(dir+"\x00"), unix.O_RDONLY|unix.O_DIRECTORY, 0)
	return e == 0 && suited(fd, from, to, ids, &left)
}

// suited takes the descriptor. The directories are added to ids, unless that is nil.
func suited(fd int, from, to *guard.Place, ids *[]guard.ID, left *int) bool {
	f := os.NewFile(uintptr(fd), "moved")
	defer f.Close()
	if ids != nil {
		*ids = append(*ids, idOf(fd, ""))
	}
	list, err := f.ReadDir(*left + 1)
	if err != nil && err != io.EOF {
		return false
	}
	if *left -= len(list); *left < 0 {
		return false
	}
	for _, e := range list {
		v, was := to.Rule(e.Name(), guard.ByHost), from.Rule(e.Name(), guard.ByHost)
		unvetted := v.Anchored && !e.IsDir() || v.Chosen && e.Type() == os.ModeSymlink
		if v.Action != guard.Free || was.Action != guard.Free || unvetted || v.Secret != was.Secret {
			return false
		}
		if e.IsDir() {
			sub, no := openAt(fd, []byte(e.Name()+"\x00"), unix.O_RDONLY|unix.O_DIRECTORY, 0)
			if no != 0 || !suited(sub, from.Below(e.Name()), to.Below(e.Name()), ids, left) {
				return false
			}
		}
	}
	return true
}

// leavesMount says whether a directory would leave the mount by which it is seen, or take mounts along. Who stands in
// it would keep the old mount, in which nobody covers a secret that the host makes there later. What is served has
// none.
func (j *job) leavesMount(from, to *name) bool {
	return j.mounted(from.abs(), true) || !j.served(from) &&
		j.mountAt(path.Dir(from.abs())) != j.mountAt(path.Dir(to.abs()))
}

// holdsNone says whether nothing below a directory may be hidden: else it would be seen where nobody hides it.
func (g *judge) holdsNone(n *name) bool {
	left := maxMoved
	fd, e := openAt(g.tree, []byte(n.path()+"\x00"), unix.O_RDONLY|unix.O_DIRECTORY, 0)
	return e == 0 && nothingHidden(fd, g.below(n), &left)
}

// nothingHidden takes the descriptor.
func nothingHidden(fd int, at *guard.Place, left *int) bool {
	f := os.NewFile(uintptr(fd), "moved")
	defer f.Close()
	list, err := f.ReadDir(*left + 1)
	if *left -= len(list); err != nil && err != io.EOF || *left < 0 {
		return false
	}
	for _, e := range list {
		if v := at.Rule(e.Name(), guard.ByHost); v.Action == guard.Hide || v.Secret != nil {
			return false
		}
		if e.IsDir() {
			sub, no := openAt(fd, []byte(e.Name()+"\x00"), unix.O_RDONLY|unix.O_DIRECTORY, 0)
			if no != 0 || !nothingHidden(sub, at.Below(e.Name()), left) {
				return false
			}
		}
	}
	return true
}

// below is what holds inside the directory of a name.
func (g *judge) below(n *name) *guard.Place {
	if g.root.MentionsRepository(n.path()) {
		return g.within(n.path())
	}
	return g.place(n.path())
}

// replaceChecked carries out a rename onto a checked name. The caller may still hold the old file open for writing, so
// what is put in place is a new file with exactly the bytes that were checked.
func (j *job) replaceChecked(p *pair, v ruling, st *unix.Stat_t) bool {
	if typeOf(*st) != unix.S_IFREG {
		j.tell(p.to, v.Why, unix.EACCES)
		return j.answer(unix.EACCES)
	}
	secret := p.from.root.judge.of(p.from).Secret
	err := names.Replace(named(p.from, p.fromDir, p.fromBase, secret), named(p.to, p.toDir, p.toBase, nil), v.Action,
		st.Mode&0o777, uint(p.flags),
		func(old, next []byte) error { return p.to.root.Check(p.to.path(), v.Action, old, next) })
	var refused names.Refused
	if errors.As(err, &refused) {
		j.say(Refusal{Path: p.to.onHost(), Why: v.Why, Err: refused.Err})
		return j.answer(unix.EACCES)
	}
	return j.answer(errnoOf(err))
}

// errnoOf is the kernel's number in an error; 0: none.
func errnoOf(err error) syscall.Errno {
	var e syscall.Errno
	if err != nil && !errors.As(err, &e) {
		return unix.EIO
	}
	return e
}

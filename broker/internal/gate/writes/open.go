//go:build linux

package writes

import (
	"runtime"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"sbx.example/sbx/broker/internal/gate/names"
	"sbx.example/sbx/broker/internal/guard"
)

// Flags of open that openat2 knows and this package passes on.
const (
	openKept = unix.O_ACCMODE | unix.O_CREAT | unix.O_EXCL | unix.O_NOCTTY | unix.O_TRUNC | unix.O_APPEND |
		unix.O_NONBLOCK | unix.O_DSYNC |
		unix.O_SYNC | unix.O_ASYNC | unix.O_DIRECT | unix.O_LARGEFILE | unix.O_DIRECTORY | unix.O_NOFOLLOW | unix.O_NOATIME |
		unix.O_TMPFILE
	nameless = unix.O_TMPFILE &^ unix.O_DIRECTORY
)

// open carries out open, openat and creat.
func (j *job) open() bool {
	if j.flags&unix.O_PATH != 0 {
		return j.elsewhere()
	}
	n := j.named(j.d.dir, j.d.path, j.mem[0][:], j.d.followed(j.flags))
	for range maxLinks {
		if n == nil {
			return j.elsewhere()
		}
		next, done := j.openHere(n)
		if done {
			return true
		}
		n = next
	}
	return j.answer(unix.ELOOP)
}

// openHere is openAt for a name that may be in a served place. No directory moves there meanwhile: by its name another
// one would be opened than the one that was judged.
func (j *job) openHere(n *name) (*name, bool) {
	if !j.served(n) {
		return j.openAt(n)
	}
	if s := j.Server(n.abs()); s != nil {
		defer s.Still()()
	}
	if !j.lendable(n) {
		return nil, j.elsewhere()
	}
	return j.openAt(n)
}

// lendable says whether a name in a served place is opened here, so that the caller gets the host's own file: only then
// is what it maps, to read and write, shared with everybody else. What is guarded, may be a secret or has a second name
// is opened by whoever serves it.
func (j *job) lendable(n *name) bool {
	g := &n.root.judge
	dir, _ := n.split()
	if v := g.of(n); v.Action != guard.Free || v.Anchored || v.Secret != nil || n.slash || !g.shows(dir) {
		return false
	}
	fd, e := openAt(n.root.fd, nulled(n.rel), unix.O_PATH|unix.O_NOFOLLOW, 0)
	switch e {
	case 0:
		defer unix.Close(fd)
		return isLink(fd) && j.d.followed(j.flags) || j.lend(n, fd)
	case unix.ENOENT:
		// A working directory that the host has just moved has no such path here any more: its server knows it still.
		var st unix.Stat_t
		return j.flags&unix.O_CREAT != 0 && statAt(n.root.fd, nulled(dir+"\x00"), &st, unix.AT_SYMLINK_NOFOLLOW) == 0
	}
	return e == unix.ELOOP
}

func (j *job) lend(n *name, fd int) bool {
	var st unix.Stat_t
	s := j.Server(n.abs())
	return s != nil && unix.Fstat(fd, &st) == nil && typeOf(st) == unix.S_IFREG && st.Nlink == 1 && s.Lend(fd)
}

// openAt opens one name. If there is a link on the way, it returns where that leads.
func (j *job) openAt(n *name) (*name, bool) {
	g := &n.root.judge
	if j.flags&nameless != 0 {
		if v := g.of(n); v.Action == guard.Hide {
			return nil, j.refuse(n, v, unix.ENOENT)
		}
		return j.opened(n, unix.Stat_t{}, false)
	}
	follow := j.d.followed(j.flags)
	var st unix.Stat_t
	exists := false
	if j.flags&unix.O_EXCL == 0 || j.flags&unix.O_CREAT == 0 {
		exists = statAt(n.root.fd, nulled(n.rel), &st, unix.AT_SYMLINK_NOFOLLOW) == 0
	}
	switch typ := st.Mode & unix.S_IFMT; {
	case !exists:
	case typ == unix.S_IFLNK && follow:
		return j.straight(n.abs(), n.slash, true), false
	case typ != unix.S_IFREG && typ != unix.S_IFDIR && typ != unix.S_IFLNK,
		typ == unix.S_IFREG && j.flags&(unix.O_ACCMODE|unix.O_TRUNC) == unix.O_RDONLY:
		// That a mount is read-only keeps nobody from pipes and sockets, nor from reading what is there.
		if where := j.straight(n.abs(), n.slash, follow); where == nil || where.rel != n.rel {
			return where, false
		}
		if typ != unix.S_IFREG || !j.unshown(n) {
			j.pass()
			return nil, true
		}
	}
	v := g.of(n)
	if text, ok := j.copyOf(n); ok && exists && j.readsOnly() {
		return nil, j.handCopy(text)
	}
	var no syscall.Errno
	switch {
	case exists && j.readsOnly():
		if typeOf(st) == unix.S_IFDIR { // what a listing shows is granted
			j.pass()
			return nil, true
		}
		no = mayRead(v)
	case v.Action == guard.Text && !n.slash && j.rewrites(exists, typeOf(st)):
		return nil, j.openText(n, v)
	case exists:
		no = mayWrite(v)
	case j.flags&unix.O_CREAT != 0:
		no = g.mayMake(n, v, byCreate)
	}
	if no != 0 {
		if where := j.straight(n.abs(), n.slash, follow); where == nil || where.rel != n.rel {
			return where, false // a link on the way: it is another name
		}
		return nil, j.refuse(n, v, no)
	}
	if v.Secret != nil && j.flags&nameless == 0 && typeOf(st) != unix.S_IFDIR {
		return j.openSecret(n)
	}
	return j.opened(n, st, exists)
}

// again looks where a name leads whose walk met a link, or answers.
func (j *job) again(n *name, e syscall.Errno) (*name, bool) {
	if e == unix.ELOOP {
		if where := j.straight(n.abs(), n.slash, j.d.followed(j.flags)); where == nil || where.rel != n.rel {
			return where, false
		}
	}
	return nil, j.answer(e)
}

func typeOf(st unix.Stat_t) uint32 { return st.Mode & unix.S_IFMT }

// rewrites says whether the call makes a file or empties it. What makes one need not say that it is to be empty.
func (j *job) rewrites(exists bool, typ uint32) bool {
	empties := typ == unix.S_IFREG && j.flags&unix.O_ACCMODE != unix.O_RDONLY && j.flags&unix.O_TRUNC != 0
	return j.flags&unix.O_CREAT != 0 && (!exists || empties)
}

// opened opens a name that was judged and hands the file over.
func (j *job) opened(n *name, st unix.Stat_t, exists bool) (*name, bool) {
	flags, mode := j.flags&openKept, uint32(0)
	if j.flags&(unix.O_CREAT|nameless) != 0 {
		mode = uint32(j.call.Arg(int(j.d.arg))) & 0o7777
		if !exists {
			j.takeMask()
		}
	}
	rel := n.rel
	if n.slash {
		rel = n.path() + "/\x00"
	}
	waits := exists && flags&unix.O_NONBLOCK == 0 // for whoever has a lease on the file
	if waits {
		flags |= unix.O_NONBLOCK
	}
	if j.flags&nameless == 0 {
		j.witness(n)
	}
	var fd int
	var e syscall.Errno
	if !exists {
		done := j.turn(n)
		if done == nil {
			return nil, j.answer(unix.EAGAIN)
		}
		defer done()
	}
	if exists {
		fd, e = j.openJudged(n.root.fd, rel, flags, mode, &object{uint64(st.Dev), st.Ino})
	} else {
		fd, e = j.openFile(n.root.fd, rel, flags, mode)
	}
	switch {
	case e == 0:
	case e == unix.ESTALE:
		return n.unjudged(), false
	case e == unix.ELOOP && (flags&unix.O_NOFOLLOW == 0 || !exists):
		return j.again(n, e)
	case e == unix.EXDEV: // something is mounted there: what guards a name
		return nil, j.refuse(n, mounted(), unix.EROFS)
	case e == unix.EAGAIN && waits:
		return j.openLater(n, rel, &object{uint64(st.Dev), st.Ino})
	default:
		return nil, j.answer(e)
	}
	if j.served(n) && !j.lend(n, fd) { // it is another file by now
		unix.Close(fd)
		return nil, j.elsewhere()
	}
	if waits {
		_, _ = unix.FcntlInt(uintptr(fd), unix.F_SETFL, int(flags&^unix.O_NONBLOCK))
	}
	j.call.Hand(fd, j.flags&unix.O_CLOEXEC != 0, j.alone(st.Mode|mode))
	return nil, true
}

func (j *job) openFile(dir int, rel string, flags uint64, mode uint32) (int, syscall.Errno) {
	for try := 0; ; try++ {
		fd, e := openAt(dir, nulled(rel), flags, mode)
		if e != unix.EAGAIN || try > 3 || flags&unix.O_NONBLOCK != 0 {
			return fd, e
		}
	}
}

// openJudged opens a file that is there. ESTALE: the host has put another one at its name since it was judged. Before a
// file is emptied it is known to be that one.
func (j *job) openJudged(dir int, rel string, flags uint64, mode uint32, judged *object) (int, syscall.Errno) {
	first := flags
	if flags&unix.O_TRUNC != 0 && !strings.HasSuffix(rel, "/\x00") { // with a slash behind it is no file
		first, mode = unix.O_PATH|unix.O_NOFOLLOW, 0
	}
	fd, e := j.openFile(dir, rel, first, mode)
	switch {
	case e == unix.ENOENT && flags&unix.O_CREAT != 0:
		return -1, unix.ESTALE
	case e != 0:
		return -1, e
	case !judged.is(fd):
		unix.Close(fd)
		return -1, unix.ESTALE
	case first == flags:
		return fd, 0
	}
	defer unix.Close(fd)
	return reopened(fd, flags)
}

// reopened opens a file that is held, with the flags of a call that named it.
func reopened(held int, flags uint64) (int, syscall.Errno) {
	fd, err := names.Reopen(held, int(flags&openKept&^(unix.O_CREAT|unix.O_EXCL|unix.O_NOFOLLOW))|unix.O_NOCTTY)
	return fd, errnoOf(err)
}

// alone says whether somebody could see that this process had the file open as well, for a moment: who runs it
// (ETXTBSY), or who takes and gives a lock. Files for locks are opened to be made if they are not there, or to be read.
func (j *job) alone(mode uint32) bool {
	if mode&0o111 != 0 {
		return true
	}
	locks := j.flags&unix.O_CREAT != 0 || j.flags&unix.O_ACCMODE == unix.O_RDWR
	return locks && j.flags&(unix.O_TRUNC|unix.O_EXCL|unix.O_APPEND|nameless) == 0
}

// openLater waits for whoever has a lease on a file, on a thread of its own. The file is held before that: its name
// may be another's by then.
func (j *job) openLater(n *name, rel string, judged *object) (*name, bool) {
	held, e := openAt(n.root.fd, nulled(rel), unix.O_PATH|unix.O_NOFOLLOW, 0)
	if e != 0 {
		return nil, j.answer(e)
	}
	if !judged.is(held) {
		unix.Close(held)
		return n.unjudged(), false
	}
	if j.served(n) && !j.lend(n, held) {
		unix.Close(held)
		return nil, j.elsewhere()
	}
	c, flags := *j.call, j.flags
	go func() {
		defer unix.Close(held)
		runtime.LockOSThread()
		if e := layCapabilitiesDown(); e != 0 {
			c.Fail(e)
			return
		}
		fd, e := reopened(held, flags)
		if e != 0 {
			c.Fail(e)
			return
		}
		c.Hand(fd, flags&unix.O_CLOEXEC != 0, true)
	}()
	return nil, true
}

// takeMask gives this thread the mask of the caller's new files.
func (j *job) takeMask() {
	if m := j.callers.umask(j.call); m != j.mask {
		umask(m)
		j.mask = m
	}
}

// mounted is what is said of a name that a mount keeps from being written.
func mounted() ruling { return ruling{Verdict: guard.Verdict{Why: "it is mounted read-only"}} }

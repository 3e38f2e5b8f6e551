package gatefs

import (
	"sync"
	"time"

	"golang.org/x/sys/unix"
	"sbx/broker/internal/gate/fuse"
)

// Locks are taken on the host's file, where everybody sees them. This is one process, so each owner inside has an open
// file description of its own there: one that it sets record locks on (F_OFD_SETLK), or that it has locked as a whole
// (flock).

// maxLocks bounds the owners, each of which holds a descriptor or two, and maxLockWaits those that wait.
const (
	maxLocks     = 4096
	maxLockWaits = 512
)

// lockOwner is who holds locks: a process, or an open file, as the kernel calls it on one object.
type lockOwner struct {
	node  *node
	id    uint64
	flock bool
}

// lockFiles are an owner's descriptions of the host's file. Only one that is open for writing can hold a lock that
// excludes others.
type lockFiles struct {
	mu          sync.Mutex
	read, write int // -1: none yet
	gone        bool
	closing     func() (closed func()) // of write: nobody inside has closed a file then
	by          *handle                // what the last lock came through; guarded by lockTable.mu
}

// lockTable is who holds what, and who waits for what this process may give back.
type lockTable struct {
	mu      sync.Mutex
	of      map[lockOwner]*lockFiles
	freed   chan struct{} // closed and made anew whenever a lock is given back
	waiting int
}

func (t *lockTable) init() {
	t.of, t.freed = make(map[lockOwner]*lockFiles), make(chan struct{})
}

// files returns an owner's descriptions, or nil.
func (t *lockTable) files(o lockOwner) *lockFiles {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.of[o]
}

// enter is files for an owner that locks through h; nil if there are too many.
func (t *lockTable) enter(o lockOwner, h *handle) *lockFiles {
	t.mu.Lock()
	defer t.mu.Unlock()
	f := t.of[o]
	if f != nil && o.flock && f.by != h { // an open file that is no more, which had the same number
		f.close()
		f = nil
	}
	if f == nil {
		if len(t.of) >= maxLocks {
			return nil
		}
		f = &lockFiles{read: -1, write: -1}
		t.of[o] = f
	}
	if f.by = h; h.lockers == nil {
		h.lockers = make(map[lockOwner]bool)
	}
	h.lockers[o] = true
	return f
}

// leave gives back what was locked through a handle that nobody has any more. The kernel says so late: who has come
// back by another handle keeps what it has.
func (t *lockTable) leave(h *handle) {
	t.mu.Lock()
	var gone []lockOwner
	for o := range h.lockers {
		if f := t.of[o]; f != nil && f.by == h {
			gone = append(gone, o)
		}
	}
	t.mu.Unlock()
	for _, o := range gone {
		t.drop(o)
	}
}

// drop gives back all that an owner has.
func (t *lockTable) drop(o lockOwner) {
	t.mu.Lock()
	f := t.of[o]
	delete(t.of, o)
	t.mu.Unlock()
	if f != nil {
		f.close()
		t.wake()
	}
}

// wake lets those that wait try again.
func (t *lockTable) wake() {
	t.mu.Lock()
	defer t.mu.Unlock()
	close(t.freed)
	t.freed = make(chan struct{})
}

func (t *lockTable) closeAll() {
	t.mu.Lock()
	defer t.mu.Unlock()
	for o, f := range t.of {
		f.close()
		delete(t.of, o)
	}
}

func (f *lockFiles) close() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.gone = true
	if f.write >= 0 {
		defer f.closing()()
	}
	for _, fd := range []*int{&f.read, &f.write} {
		if *fd >= 0 {
			all := unix.Flock_t{Type: unix.F_UNLCK}
			_ = unix.Flock(*fd, unix.LOCK_UN) // a process that has just been cloned may have the description too, for a moment
			_ = unix.FcntlFlock(uintptr(*fd), unix.F_OFD_SETLK, &all)
			unix.Close(*fd)
			*fd = -1
		}
	}
}

// lockFile returns the description on which a lock of that type is set. f.mu is held.
func (s *Server) lockFile(f *lockFiles, h *handle, typ uint32) (fd int, err error) {
	if f.gone {
		return -1, unix.EBADF
	}
	at, flags := &f.read, unix.O_RDONLY
	if typ == unix.F_WRLCK || f.write >= 0 {
		at, flags = &f.write, unix.O_RDWR
		f.closing = func() func() { return s.expectAt(h.node, unix.IN_CLOSE_WRITE) }
	}
	if *at < 0 {
		if *at, err = s.reopen(h.fd, flags); err != nil { // of a file that can only be written
			*at, err = s.reopen(h.fd, unix.O_WRONLY)
		}
	}
	return *at, err
}

// GetLk says which lock would be in the way.
func (s *Server) GetLk(cancel <-chan struct{}, in *fuse.LkIn, out *fuse.LkOut) fuse.Status {
	h := s.files.get(in.Fh)
	if h == nil || h.fd < 0 {
		return fuse.EBADF
	}
	o := lockOwner{node: h.node, id: in.Owner}
	f, l := s.locks.files(o), hostLock(in.Lock)
	if f == nil { // it has none of its own
		f = &lockFiles{read: -1, write: -1}
		defer f.close()
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	fd, err := s.lockFile(f, h, unix.F_RDLCK)
	if err == nil {
		err = unix.FcntlFlock(uintptr(fd), unix.F_OFD_GETLK, &l)
	}
	out.Lock = fuse.FileLock{Start: uint64(l.Start), End: lastOf(&l), Type: uint32(l.Type)}
	return status(err)
}

// SetLk takes a lock or gives it back.
func (s *Server) SetLk(cancel <-chan struct{}, in *fuse.LkIn, wait bool) fuse.Status {
	h := s.files.get(in.Fh)
	if h == nil || h.fd < 0 {
		return fuse.EBADF
	}
	o := lockOwner{h.node, in.Owner, in.Flags&fuse.LK_FLOCK != 0}
	if in.Lock.Type == unix.F_UNLCK {
		return s.unlock(o, in.Lock)
	}
	f := s.locks.enter(o, h)
	if f == nil {
		return errno(unix.ENOLCK)
	}
	code := s.lock(f, h, o, in.Lock)
	if code == errno(unix.EAGAIN) && wait {
		code = s.waitLock(cancel, f, h, o, in.Lock)
	}
	if code == fuse.OK { // what was read before may have been changed by whoever had the lock
		s.fuse.PagesNotify(h.node.id)
	}
	return code
}

// unlock gives a range back. A file that was locked as a whole needs its description no more.
func (s *Server) unlock(o lockOwner, l fuse.FileLock) fuse.Status {
	if o.flock {
		s.locks.drop(o)
		return fuse.OK
	}
	f := s.locks.files(o)
	if f == nil {
		return fuse.OK
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	defer s.locks.wake()
	var err error
	for _, fd := range [...]int{f.read, f.write} {
		h := hostLock(l)
		if fd >= 0 && err == nil {
			err = unix.FcntlFlock(uintptr(fd), unix.F_OFD_SETLK, &h)
		}
	}
	return status(err)
}

// lock tries once.
func (s *Server) lock(f *lockFiles, h *handle, o lockOwner, l fuse.FileLock) fuse.Status {
	f.mu.Lock()
	defer f.mu.Unlock()
	if o.flock {
		fd, err := s.lockFile(f, h, unix.F_RDLCK)
		if err != nil {
			return status(err)
		}
		how := unix.LOCK_SH
		if l.Type == unix.F_WRLCK {
			how = unix.LOCK_EX
		}
		return status(unix.Flock(fd, how|unix.LOCK_NB))
	}
	fd, err := s.lockFile(f, h, l.Type)
	if err != nil {
		return status(err)
	}
	mine := hostLock(l)
	if fd == f.write && f.read >= 0 { // else it would be in its own way
		mine.Type = unix.F_UNLCK
		_ = unix.FcntlFlock(uintptr(f.read), unix.F_OFD_SETLK, &mine)
		mine = hostLock(l)
	}
	return status(unix.FcntlFlock(uintptr(fd), unix.F_OFD_SETLK, &mine))
}

// How often it is looked whether the host has given a lock back: it tells nobody. What is given back inside is known at
// once.
const (
	firstLook = 200 * time.Microsecond
	lastLook  = 10 * time.Millisecond
)

// waitLock tries until it has the lock, or the caller was interrupted. Nothing is held by whoever waits, so nothing is
// left behind.
func (s *Server) waitLock(cancel <-chan struct{}, f *lockFiles, h *handle, o lockOwner, l fuse.FileLock) fuse.Status {
	if !s.locks.mayWait() {
		return errno(unix.ENOLCK)
	}
	defer s.locks.waited()
	look := time.NewTimer(firstLook)
	defer look.Stop()
	for next := firstLook; ; next = min(2*next, lastLook) {
		s.locks.mu.Lock()
		freed := s.locks.freed
		s.locks.mu.Unlock()
		if code := s.lock(f, h, o, l); code != errno(unix.EAGAIN) {
			return code
		}
		look.Reset(next)
		select {
		case <-cancel:
			return errno(unix.EINTR)
		case <-s.closed.Done():
			return fuse.EIO
		case <-freed:
		case <-look.C:
		}
	}
}

func (t *lockTable) mayWait() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.waiting >= maxLockWaits {
		return false
	}
	t.waiting++
	return true
}

func (t *lockTable) waited() {
	t.mu.Lock()
	t.waiting--
	t.mu.Unlock()
}

// hostLock words a range as fcntl does: a length of 0 goes to the end, wherever that will be.
func hostLock(l fuse.FileLock) unix.Flock_t {
	out := unix.Flock_t{Type: int16(l.Type), Whence: unix.SEEK_SET, Start: int64(l.Start)}
	if l.End < 1<<63-1 {
		out.Len = int64(l.End-l.Start) + 1
	}
	return out
}

func lastOf(l *unix.Flock_t) uint64 {
	if l.Len == 0 {
		return 1<<63 - 1
	}
	return uint64(l.Start+l.Len) - 1
}

//go:build linux

package locks

import (
	"context"
	"sync"
	"time"

	"golang.org/x/sys/unix"
	"sbx.example/sbx/broker/internal/gate/fuse"
)

// maxLocks bounds the owners, each of which holds a descriptor or two, and maxLockWaits those that wait.
const (
	maxLocks     = 4096
	maxLockWaits = 512
)

// Owner is who holds locks: a process, or an open file, as the kernel calls it on one object.
type Owner struct {
	Object uint64 // its number
	ID     uint64
	Flock  bool
}

// File is an open file of somebody inside, which he locks through. Its zero value is one that he has locked nothing
// through.
type File struct {
	owners map[Owner]bool // guarded by Table.mu
}

// Host is the host's file that is locked.
type Host interface {
	Open(flags int) (fd int, err error) // makes an open file description of its own
	Closing() (closed func())           // is called before and after one that was open for writing is closed
}

// lockFiles are an owner's descriptions of the host's file. Only one that is open for writing can hold a lock that
// excludes others.
type lockFiles struct {
	mu          sync.Mutex
	read, write int // -1: none yet
	gone        bool
	closing     func() (closed func()) // of write: nobody inside has closed a file then
	by          *File                  // what the last lock came through; guarded by Table.mu
}

// Table is who holds what, and who waits for what this process may give back.
type Table struct {
	over    context.Context
	mu      sync.Mutex
	of      map[Owner]*lockFiles
	freed   chan struct{} // closed and made anew whenever a lock is given back
	waiting int
}

// New makes a table in which nobody holds anything. Over ends all waiting.
func New(over context.Context) *Table {
	return &Table{over: over, of: make(map[Owner]*lockFiles), freed: make(chan struct{})}
}

// files returns an owner's descriptions, or nil.
func (t *Table) files(o Owner) *lockFiles {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.of[o]
}

// enter is files for an owner that locks through h; nil if there are too many.
func (t *Table) enter(o Owner, h *File) *lockFiles {
	t.mu.Lock()
	defer t.mu.Unlock()
	f := t.of[o]
	if f != nil && o.Flock && f.by != h { // an open file that is no more, which had the same number
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
	if f.by = h; h.owners == nil {
		h.owners = make(map[Owner]bool)
	}
	h.owners[o] = true
	return f
}

// Leave gives back what was locked through a file that nobody has any more. The kernel says so late: who has come
// back by another file keeps what it has.
func (t *Table) Leave(h *File) {
	t.mu.Lock()
	var gone []Owner
	for o := range h.owners {
		if f := t.of[o]; f != nil && f.by == h {
			gone = append(gone, o)
		}
	}
	t.mu.Unlock()
	for _, o := range gone {
		t.Drop(o)
	}
}

// Drop gives back all that an owner has.
func (t *Table) Drop(o Owner) {
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
func (t *Table) wake() {
	t.mu.Lock()
	defer t.mu.Unlock()
	close(t.freed)
	t.freed = make(chan struct{})
}

// Close gives everything back.
func (t *Table) Close() {
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

// on returns the description on which a lock of that type is set. f.mu is held.
func (f *lockFiles) on(h Host, typ uint32) (fd int, err error) {
	if f.gone {
		return -1, unix.EBADF
	}
	at, flags := &f.read, unix.O_RDONLY
	if typ == unix.F_WRLCK || f.write >= 0 {
		at, flags, f.closing = &f.write, unix.O_RDWR, h.Closing
	}
	if *at < 0 {
		if *at, err = h.Open(flags); err != nil { // of a file that can only be written
			*at, err = h.Open(unix.O_WRONLY)
		}
	}
	return *at, err
}

// Get says which lock would be in the way.
func (t *Table) Get(o Owner, h Host, lock fuse.FileLock) (fuse.FileLock, fuse.Status) {
	f, l := t.files(o), hostLock(lock)
	if f == nil { // it has none of its own
		f = &lockFiles{read: -1, write: -1}
		defer f.close()
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	fd, err := f.on(h, unix.F_RDLCK)
	if err == nil {
		err = unix.FcntlFlock(uintptr(fd), unix.F_OFD_GETLK, &l)
	}
	return fuse.FileLock{Start: uint64(l.Start), End: lastOf(&l), Type: uint32(l.Type)}, fuse.ToStatus(err)
}

// Set takes a lock through an open file, or gives it back.
func (t *Table) Set(cancel <-chan struct{}, o Owner, through *File, h Host, l fuse.FileLock, wait bool) fuse.Status {
	if l.Type == unix.F_UNLCK {
		return t.unlock(o, l)
	}
	f := t.enter(o, through)
	if f == nil {
		return fuse.Status(unix.ENOLCK)
	}
	code := f.lock(h, o, l)
	if code == fuse.EAGAIN && wait {
		code = t.wait(cancel, f, h, o, l)
	}
	return code
}

// unlock gives a range back. A file that was locked as a whole needs its description no more.
func (t *Table) unlock(o Owner, l fuse.FileLock) fuse.Status {
	if o.Flock {
		t.Drop(o)
		return fuse.OK
	}
	f := t.files(o)
	if f == nil {
		return fuse.OK
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	defer t.wake()
	var err error
	for _, fd := range [...]int{f.read, f.write} {
		h := hostLock(l)
		if fd >= 0 && err == nil {
			err = unix.FcntlFlock(uintptr(fd), unix.F_OFD_SETLK, &h)
		}
	}
	return fuse.ToStatus(err)
}

// lock tries once.
func (f *lockFiles) lock(h Host, o Owner, l fuse.FileLock) fuse.Status {
	f.mu.Lock()
	defer f.mu.Unlock()
	if o.Flock {
		fd, err := f.on(h, unix.F_RDLCK)
		if err != nil {
			return fuse.ToStatus(err)
		}
		how := unix.LOCK_SH
		if l.Type == unix.F_WRLCK {
			how = unix.LOCK_EX
		}
		return fuse.ToStatus(unix.Flock(fd, how|unix.LOCK_NB))
	}
	fd, err := f.on(h, l.Type)
	if err != nil {
		return fuse.ToStatus(err)
	}
	mine := hostLock(l)
	if fd == f.write && f.read >= 0 { // else it would be in its own way
		mine.Type = unix.F_UNLCK
		_ = unix.FcntlFlock(uintptr(f.read), unix.F_OFD_SETLK, &mine)
		mine = hostLock(l)
	}
	return fuse.ToStatus(unix.FcntlFlock(uintptr(fd), unix.F_OFD_SETLK, &mine))
}

// How often it is looked whether the host has given a lock back: it tells nobody. What is given back inside is known at
// once.
const (
	firstLook = 200 * time.Microsecond
	lastLook  = 10 * time.Millisecond
)

// wait tries until it has the lock, or the caller was interrupted. Nothing is held by whoever waits, so nothing is
// left behind.
func (t *Table) wait(cancel <-chan struct{}, f *lockFiles, h Host, o Owner, l fuse.FileLock) fuse.Status {
	if !t.mayWait() {
		return fuse.Status(unix.ENOLCK)
	}
	defer t.waited()
	look := time.NewTimer(firstLook)
	defer look.Stop()
	for next := firstLook; ; next = min(2*next, lastLook) {
		t.mu.Lock()
		freed := t.freed
		t.mu.Unlock()
		if code := f.lock(h, o, l); code != fuse.EAGAIN {
			return code
		}
		look.Reset(next)
		select {
		case <-cancel:
			return fuse.EINTR
		case <-t.over.Done():
			return fuse.EIO
		case <-freed:
		case <-look.C:
		}
	}
}

func (t *Table) mayWait() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.waiting >= maxLockWaits {
		return false
	}
	t.waiting++
	return true
}

func (t *Table) waited() {
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

//go:build linux

package writes

import (
	"bytes"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"

	"sbx.example/sbx/broker/internal/gate/notify"
)

// callers remembers the threads that called last, by number: their directory in /proc, which is that very thread's as
// long as it lives, and the mask that their new files get. To read the mask anew each time would take longer than all
// the rest.
type callers struct {
	list map[uint32]*caller
}

type caller struct {
	proc  int // its directory in /proc
	group int
	mask  *uint32 // shared by the threads of a process; nil: not read yet
	seen  uint64  // the last call during which proc was the caller's beyond doubt
}

// maxCallers bounds what is remembered, and so the descriptors.
const maxCallers = 64

// of returns what is known of the caller.
func (l *callers) of(c *notify.Call) *caller {
	if known := l.list[c.PID()]; known != nil {
		return known
	}
	fd, err := unix.Open(c.Proc(), unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil
	}
	if !c.Valid() { // the number may be another's by now
		unix.Close(fd)
		return nil
	}
	if l.list == nil || len(l.list) >= maxCallers {
		l.forget()
		l.list = make(map[uint32]*caller, maxCallers)
	}
	known := &caller{proc: fd, seen: c.ID()}
	l.list[c.PID()] = known
	return known
}

// forget forgets all.
func (l *callers) forget() {
	for _, old := range l.list {
		unix.Close(old.proc)
	}
	l.list = nil
}

// drop forgets a thread that has ended.
func (l *callers) drop(c *notify.Call) {
	if known := l.list[c.PID()]; known != nil {
		unix.Close(known.proc)
		delete(l.list, c.PID())
	}
}

// readlink reads a link in the caller's directory in /proc. A directory of a thread that has ended has none.
func (l *callers) readlink(c *notify.Call, name, dst []byte) (int, syscall.Errno) {
	for again := false; ; again = true {
		known := l.of(c)
		if known == nil {
			return 0, unix.ESRCH
		}
		n, e := readLinkAt(known.proc, name, dst)
		if e == 0 {
			known.seen = c.ID()
		}
		if e == 0 || again || e != unix.ESRCH && e != unix.ENOENT {
			return n, e
		}
		l.drop(c)
	}
}

// open pins what one of the caller's links in /proc leads to.
func (l *callers) open(c *notify.Call, name string) (int, syscall.Errno) {
	known := l.of(c)
	if known == nil || !known.alive() {
		return -1, unix.ESRCH
	}
	fd, err := unix.Openat(known.proc, name, unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		return -1, err.(syscall.Errno)
	}
	return fd, 0
}

// stat looks at what one of the caller's links in /proc leads to.
func (l *callers) stat(c *notify.Call, name []byte, st *unix.Stat_t) syscall.Errno {
	known := l.of(c)
	if known == nil {
		return unix.ESRCH
	}
	return statAt(known.proc, name, st, 0)
}

// mount is the mount that one of the caller's links in /proc leads to.
func (l *callers) mount(c *notify.Call, name string) (uint64, bool) {
	known := l.of(c)
	var st unix.Statx_t
	if known == nil || unix.Statx(known.proc, name, unix.AT_STATX_DONT_SYNC, unix.STATX_MNT_ID, &st) != nil {
		return 0, false
	}
	return st.Mnt_id, true
}

// isPath says whether one of the caller's descriptors is a path alone, through which nothing is changed.
func (l *callers) isPath(c *notify.Call, fd string) bool {
	known := l.of(c)
	if known == nil {
		return false
	}
	flags, ok := known.number("fdinfo/"+fd, "\nflags:\t", 8)
	return ok && flags&unix.O_PATH != 0
}

func (known *caller) alive() bool { return unix.PidfdSendSignal(known.proc, 0, nil, 0) == nil }

// umask is the mask of the caller's new files; all bits where it cannot be read.
func (l *callers) umask(c *notify.Call) uint32 {
	known := l.of(c)
	if known != nil && known.seen != c.ID() && !known.alive() {
		l.drop(c)
		known = l.of(c)
	}
	if known == nil {
		return 0o777
	}
	if known.mask == nil {
		l.read(known)
	}
	if known.mask == nil {
		return 0o777
	}
	return *known.mask
}

// note takes in that the caller is about to set its mask. What a thread of the same process makes meanwhile may get
// either.
func (l *callers) note(c *notify.Call, mask uint32) {
	l.umask(c)
	if known := l.list[c.PID()]; known != nil && known.mask != nil {
		*known.mask = mask
	}
}

// read asks /proc. A mask that was noted for another thread of the process counts more: it may not have been set yet.
// Processes that share one without being threads of each other (CLONE_FS) do not hear of each other's changes.
func (l *callers) read(known *caller) {
	var b [512]byte
	n := known.text("status", b[:])
	mask, ok1 := field(b[:n], "\nUmask:\t", 8)
	group, ok2 := field(b[:n], "\nTgid:\t", 10)
	if !ok1 || !ok2 {
		return
	}
	known.group = int(group)
	for _, other := range l.list {
		if other != known && other.group == known.group && other.mask != nil && other.alive() {
			known.mask = other.mask
			return
		}
	}
	m := uint32(mask)
	known.mask = &m
}

// text reads the beginning of one of the caller's files in /proc.
func (known *caller) text(name string, b []byte) int {
	fd, err := unix.Openat(known.proc, name, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return 0
	}
	defer unix.Close(fd)
	n, _ := unix.Read(fd, b)
	return max(n, 0)
}

func (known *caller) number(file, name string, base int) (uint64, bool) {
	var b [512]byte
	return field(b[:known.text(file, b[:])], name, base)
}

func field(b []byte, name string, base int) (uint64, bool) {
	_, rest, ok := bytes.Cut(b, []byte(name))
	line, _, end := bytes.Cut(rest, []byte("\n"))
	v, err := strconv.ParseUint(string(line), base, 32)
	return v, ok && end && err == nil
}

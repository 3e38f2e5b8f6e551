package notify

import (
	"fmt"
	"runtime"
	"sync/atomic"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// startFront starts the thread and returns where it hands notifications over. Without it, the loop receives them itself.
func (s *server) startFront() (from int, err error) {
	var pipe [2]int
	if err := unix.Pipe2(pipe[:], unix.O_CLOEXEC); err != nil {
		return -1, fmt.Errorf("making pipe: %w", err)
	}
	m, err := unix.Mmap(-1, 0, int(unsafe.Sizeof(front{})), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
	if err != nil {
		unix.Close(pipe[0])
		unix.Close(pipe[1])
		return -1, fmt.Errorf("mapping memory: %w", err)
	}
	f := (*front)(unsafe.Pointer(&m[0]))
	f.fd, f.pipe = uintptr(s.fd), uintptr(pipe[1])
	f.prepare(s)
	// No signal is for it: Go's handlers would run in it.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var all, old unix.Sigset_t
	for i := range all.Val {
		all.Val[i] = ^all.Val[i]
	}
	err = unix.PthreadSigmask(unix.SIG_SETMASK, &all, &old)
	if err == nil {
		if _, errno := rawFront(uintptr(unsafe.Pointer(&f.stack))+uintptr(len(f.stack))&^15, f); errno != 0 {
			err = syscall.Errno(errno)
		}
		_ = unix.PthreadSigmask(unix.SIG_SETMASK, &old, nil)
	}
	if err != nil {
		unix.Close(pipe[0])
		unix.Close(pipe[1])
		_ = unix.Munmap(m)
		return -1, fmt.Errorf("cloning: %w", err)
	}
	s.front = f
	return pipe[0], nil
}

// prepare tells the front all that is known before anybody has called.
func (f *front) prepare(s *server) {
	f.arch = s.native
	f.closed, f.taken = flagOf(&s.closed), (*int64)(unsafe.Pointer(s.Taken))
	f.placed, f.always = flagOf(s.Placed), s.Placed == nil && s.Grafter != nil
	for nr, i := range s.calls.byNr[s.native] {
		if i == 0 || int(i) > len(f.calls) || nr >= len(f.index) {
			continue
		}
		switch c := &s.calls.calls[i-1]; c.kind {
		case kindOpen, kindStat, kindStatx, kindStatfs, kindAccess, kindReadlink, kindRead, kindWrite, kindMake, kindDrop, kindXattr:
			f.calls[i-1], f.index[nr] = *c, i
		}
	}
}

func flagOf(b *atomic.Bool) *uint32 {
	const _ = uint(4-unsafe.Sizeof(atomic.Bool{})) + uint(unsafe.Sizeof(atomic.Bool{})-4)
	return (*uint32)(unsafe.Pointer(b))
}

// publish tells the front where to walk.
func (s *server) publish(r *sandboxRoot) {
	f := s.front
	if f == nil {
		return
	}
	f.root, f.mount = uintptr(r.fd), r.id.mount
	for _, dir := range r.served {
		if !f.served.add(dir) {
			return // it hands everything over
		}
	}
	if v, ok := s.View.(Known); ok {
		shown, sealed := v.Known()
		for _, p := range shown {
			if !f.shown.add(p) {
				break
			}
		}
		f.known = true
		for _, p := range sealed {
			f.known = f.known && f.sealed.add(p)
		}
	}
	var fs unix.Statfs_t
	f.memory = unix.Fstatfs(r.fd, &fs) == nil && fs.Type == unix.TMPFS_MAGIC
	atomic.StoreUint32(&f.ready, 1)
}

// takeFrom receives what the front hands over.
func takeFrom(pipe int, n *notif) syscall.Errno {
	for {
		k, _, e := unix.Syscall(unix.SYS_READ, uintptr(pipe), uintptr(unsafe.Pointer(n)), unsafe.Sizeof(*n))
		switch {
		case e == unix.EINTR:
		case e != 0:
			return e
		case k != unsafe.Sizeof(*n):
			return unix.EPIPE
		default:
			return 0
		}
	}
}

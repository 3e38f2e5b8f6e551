package resources

import (
	"fmt"
	"path/filepath"
	"runtime"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// The mourner outlives the broker and removes its group: nobody else could, as a killed broker runs nothing any more and what is in
// the sandbox sees none of it. It is a process that shares the broker's memory, so that it costs none, and uses of it
// only what follows.

// Descriptors of the mourner's.
const (
	mournPipe   = iota // ends when the broker does
	mournKill          // cgroup.kill of the group
	mournParent        // the directory above the group
	mournLock          // the group's directory, whose lock keeps others away until it is gone
	mournEnd
)

// mourning is the memory that the mourner uses, outside of Go's heap.
type mourning struct {
	fds         [mournEnd]uintptr
	name, inner [256]byte // of the group and of the one in it, relative to the parent
	one         [8]byte
	pause       unix.Timespec
	stack       [16 << 10]byte
}

// mournTries is how often it tries to remove a group whose processes are dying, mournPause apart.
const (
	mournTries = 1000
	mournPause = 5e6
)

// rawMourner starts a process that runs mourn(b) and shares this one's memory.
//
//go:noescape
func rawMourner(stack uintptr, b *mourning) (pid, errno uintptr)

// mourn is all that the process does.
//
//lint:ignore U1000 mourn_*.s calls it
//go:nosplit
//go:norace
func mourn(b *mourning) {
	syscall.RawSyscall(syscall.SYS_SETSID, 0, 0, 0)
	for i := uintptr(0); i < mournEnd; i++ {
		syscall.RawSyscall(syscall.SYS_DUP3, b.fds[i], i, 0)
	}
	syscall.RawSyscall(unix.SYS_CLOSE_RANGE, mournEnd, ^uintptr(0)>>32, 0)
	for {
		n, _, e := syscall.RawSyscall(syscall.SYS_READ, mournPipe, uintptr(unsafe.Pointer(&b.one[4])), 1)
		if e == 0 && n == 0 || e != 0 && e != syscall.EINTR {
			break
		}
	}
	syscall.RawSyscall(syscall.SYS_WRITE, mournKill, uintptr(unsafe.Pointer(&b.one[0])), 1)
	for i := 0; i < mournTries; i++ {
		syscall.RawSyscall(syscall.SYS_UNLINKAT, mournParent, uintptr(unsafe.Pointer(&b.inner[0])), unix.AT_REMOVEDIR)
		_, _, e := syscall.RawSyscall(syscall.SYS_UNLINKAT, mournParent, uintptr(unsafe.Pointer(&b.name[0])), unix.AT_REMOVEDIR)
		if e != syscall.EBUSY && e != syscall.ENOTEMPTY {
			break
		}
		syscall.RawSyscall(syscall.SYS_NANOSLEEP, uintptr(unsafe.Pointer(&b.pause)), 0, 0)
	}
	for {
		syscall.RawSyscall(syscall.SYS_EXIT_GROUP, 0, 0, 0)
	}
}

// Mourned has the group removed when this process is killed.
func (g *Group) Mourned() error {
	failed := func(what string, err error) error {
		return fmt.Errorf("%s for the end of control group %s: %w", what, g.Dir, err)
	}
	m, err := unix.Mmap(-1, 0, int(unsafe.Sizeof(mourning{})), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
	if err != nil {
		return failed("mapping memory", err)
	}
	b := (*mourning)(unsafe.Pointer(&m[0]))
	b.one[0], b.pause = '1', unix.NsecToTimespec(mournPause)
	name := filepath.Base(g.Dir)
	if len(name)+len("/inside") >= len(b.name) {
		return failed("naming", unix.ENAMETOOLONG)
	}
	copy(b.name[:], name)
	copy(b.inner[:], name+"/inside")
	var fds [mournEnd]int
	kept := -1 // ours; the kernel closes it when this process is no more
	defer func() {
		for _, fd := range fds {
			unix.Close(fd)
		}
	}()
	for i := range fds {
		fds[i] = -1
	}
	for i, open := range [mournEnd]func() (int, error){
		mournPipe: func() (int, error) {
			var p [2]int
			err := unix.Pipe2(p[:], unix.O_CLOEXEC)
			kept = p[1]
			return p[0], err
		},
		mournKill: func() (int, error) { return unix.Open(g.Dir+"/cgroup.kill", unix.O_WRONLY|unix.O_CLOEXEC, 0) },
		mournParent: func() (int, error) {
			return unix.Open(filepath.Dir(g.Dir), unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
		},
		mournLock: func() (int, error) { return g.lock, nil },
	} {
		fd, err := open()
		if err == nil { // above the numbers that they get there
			fds[i], err = unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 3*mournEnd)
			if i != mournLock {
				unix.Close(fd)
			}
		}
		if err != nil {
			unix.Close(kept)
			return failed("opening what is needed", err)
		}
		b.fds[i] = uintptr(fds[i])
	}
	// No signal reaches it but one that cannot be caught: this process's handlers would run in it.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var all, old unix.Sigset_t
	for i := range all.Val {
		all.Val[i] = ^all.Val[i]
	}
	if err := unix.PthreadSigmask(unix.SIG_SETMASK, &all, &old); err != nil {
		unix.Close(kept)
		return failed("blocking signals", err)
	}
	pid, errno := rawMourner(uintptr(unsafe.Pointer(&b.stack))+uintptr(len(b.stack))&^15, b)
	_ = unix.PthreadSigmask(unix.SIG_SETMASK, &old, nil)
	if errno != 0 {
		unix.Close(kept)
		return failed("cloning", syscall.Errno(errno))
	}
	g.mourner, g.alive = int(pid), kept
	return nil
}

// unmourned ends the mourner: what it would do is done by this process now.
func (g *Group) unmourned() {
	if g.mourner == 0 {
		return
	}
	_ = unix.Kill(g.mourner, unix.SIGKILL)
	for {
		if _, err := unix.Wait4(g.mourner, nil, unix.WALL, nil); err != unix.EINTR {
			break
		}
	}
	unix.Close(g.alive)
	g.mourner = 0
}

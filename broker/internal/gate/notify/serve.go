//go:build linux

package notify

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"sbx.example/sbx/broker/internal/gate/names"
	"sbx.example/sbx/seccompbpf"
)

const (
	defaultWorkers = 512
	coldLookups    = 32  // walks that wait for a disk at the same time; one more waits in the loop
	openConnects   = 256 // connects that have not come to an end
)

// server is one running engine.
type server struct {
	Options
	fd       int
	ctx      context.Context
	calls    *callIndex
	native   uint32 // the architecture whose structures this process can write
	caps     bool   // this process has capabilities that the sandbox must not profit from
	root     atomic.Pointer[sandboxRoot]
	closed   atomic.Bool
	asks     chan struct{}
	cold     chan struct{}
	connects chan struct{}
	work     sync.WaitGroup // walks and questions
	late     sync.WaitGroup // everything that may outlive Serve: connects, and the loop of an older kernel
	copies   copies
	files    grafted
	refused  refusals
	sockets  inFlight
	host     hostDevices
	makings  names.Makings // where a name was let be made

	scratches sync.Pool // of *scratch: five pages, which are new each time otherwise
}

// Serve answers until the last process of the sandbox is gone or ctx ends; whatever is asked after that is refused.
func Serve(ctx context.Context, o Options) error {
	s, err := newServer(o)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	s.ctx = ctx
	ended := make(chan error, 1)
	s.late.Go(func() { ended <- s.loop() })
	err = s.watch(ctx, ended)
	s.closed.Store(true)
	cancel()
	s.sockets.end()
	idle := make(chan struct{})
	go func() {
		s.work.Wait()
		close(idle)
		s.late.Wait()
		s.release()
	}()
	select {
	case <-idle:
	case <-time.After(time.Second): // a walk on a disk that does not answer
	}
	return err
}

// release closes what the last goroutine has used: before that a number might already be another descriptor's.
func (s *server) release() {
	s.copies.close()
	if r := s.root.Load(); r != nil {
		unix.Close(r.fd)
	}
	unix.Close(s.fd)
}

func newServer(o Options) (*server, error) {
	if o.Listener == nil {
		return nil, errors.New("serving notifications: no listener, start the sandbox with plan.FdSeccomp")
	}
	if o.View == nil {
		return nil, errors.New("serving notifications: no view of the sandbox's mounts, pass one")
	}
	if ok, errno := notifSizes(); errno != 0 || !ok {
		return nil, fmt.Errorf("serving notifications: this kernel's structures are not the known ones (%w), use --gate off",
			errOr(errno, unix.EPROTO))
	}
	if o.workers <= 0 {
		o.workers = defaultWorkers
	}
	if o.Taken == nil {
		o.Taken = new(atomic.Int64)
	}
	fd, err := unix.FcntlInt(o.Listener.Fd(), unix.F_DUPFD_CLOEXEC, 3)
	if err != nil {
		return nil, fmt.Errorf("serving notifications: duplicating the listener: %w", err)
	}
	s := &server{Options: o, fd: fd, asks: make(chan struct{}, o.workers),
		cold: make(chan struct{}, coldLookups), connects: make(chan struct{}, openConnects), caps: hasCapabilities()}
	s.native = nativeArch()
	other := seccompbpf.I386
	if s.native == uint32(seccompbpf.ARM64) {
		other = seccompbpf.ARM
	}
	s.calls = newCallIndex(seccompbpf.Arch(s.native), other)
	if err := s.host.note("/proc/self/mountinfo"); err != nil {
		unix.Close(fd)
		return nil, fmt.Errorf("serving notifications: %w", err)
	}
	// 6.6; older kernels say EINVAL and are merely slower.
	setFlags(s.fd, unix.SECCOMP_USER_NOTIF_FD_SYNC_WAKE_UP)
	return s, nil
}

func nativeArch() uint32 {
	if runtime.GOARCH == "arm64" {
		return uint32(seccompbpf.ARM64)
	}
	return uint32(seccompbpf.AMD64)
}

func errOr(e, otherwise syscall.Errno) error {
	if e != 0 {
		return e
	}
	return otherwise
}

// watch waits for the end from outside the loop: before 6.11 nothing interrupts a RECV when the last process goes, and
// nothing ever interrupts it when ctx ends.
func (s *server) watch(ctx context.Context, ended <-chan error) error {
	wake, err := unix.Eventfd(0, unix.EFD_CLOEXEC)
	if err != nil {
		return fmt.Errorf("making event descriptor: %w", err)
	}
	wakeFile := os.NewFile(uintptr(wake), "wake")
	defer wakeFile.Close()
	polled := make(chan struct{})
	go func() {
		defer close(polled)
		_ = await([]unix.PollFd{{Fd: int32(s.fd)}, {Fd: int32(wake), Events: unix.POLLIN}}, -1)
	}()
	stop := func() { _, _ = unix.Write(wake, []byte{1, 0, 0, 0, 0, 0, 0, 0}); <-polled }
	select {
	case <-polled:
		return nil
	case <-ctx.Done():
		stop()
		return ctx.Err()
	case err := <-ended:
		stop()
		return err
	}
}

// hungUp says whether no process is left that could notify.
func (s *server) hungUp() bool { return gone(s.fd) }

func gone(fd int) bool {
	fds := []unix.PollFd{{Fd: int32(fd)}}
	_ = await(fds, 0)
	return fds[0].Revents&(unix.POLLHUP|unix.POLLNVAL) != 0
}

// await is poll(2) for a listener and what is waited for beside it. A signal may interrupt the kernel while it looks at
// the listener, and says so by POLLERR (seccomp_notify_poll in kernel/seccomp.c), which means nothing.
func await(fds []unix.PollFd, timeout int) error {
	for {
		_, err := unix.Poll(fds, timeout)
		if err != unix.EINTR && (err != nil || fds[0].Revents&unix.POLLERR == 0) {
			return err
		}
	}
}

// loop receives and answers what can be answered without waiting for anything.
func (s *server) loop() error {
	var n notif
	sc := new(scratch)
	if s.Carrier != nil {
		if err := s.Carrier.Begin(); err != nil {
			s.Carrier = nil // what it would have carried out the kernel refuses
			if s.Log != nil {
				s.Log(Note{Op: "write", Errno: unix.EROFS, Why: err.Error()})
			}
		}
	}
	for r := (receiver{fd: s.fd}); ; {
		switch e := r.next(&n); e {
		case 0:
			s.Taken.Add(1)
			s.first(&n, sc)
		case unix.EINTR:
		case unix.ENOENT: // the caller was killed meanwhile, or there are none any more
			if s.hungUp() {
				return nil
			}
		default:
			if s.hungUp() {
				return nil
			}
			return fmt.Errorf("receiving notification: %w", e)
		}
	}
}

// pass lets the kernel carry the call out itself. It is right wherever the kernel's own walk, whatever the path in
// memory says by then, reaches only what is mounted inside.
func (s *server) pass(id uint64) {
	send(s.fd, &reply{id: id, flags: unix.SECCOMP_USER_NOTIF_FLAG_CONTINUE})
}

func (s *server) fail(id uint64, e syscall.Errno) {
	if e == 0 {
		e = unix.EACCES
	}
	send(s.fd, &reply{id: id, errno: -int32(e)})
}

func (s *server) value(id uint64, v int64) { send(s.fd, &reply{id: id, val: v}) }

// refuse is fail with a reason for the log.
func (s *server) refuse(n *notif, op, path string, e syscall.Errno, why string) {
	if e == 0 {
		e = unix.EACCES
	}
	if s.Log != nil { // before the caller goes on: it may end at once, and is to be named
		s.Log(Note{PID: n.pid, Op: op, Path: path, Errno: e, Why: why})
	}
	s.fail(n.id, e)
}

// spawn runs f for a call that has to wait, if there is room; it does not wait itself.
func (s *server) spawn(room chan struct{}, f func()) bool {
	select {
	case room <- struct{}{}:
	default:
		return false
	}
	s.work.Go(func() {
		defer func() { <-room }()
		f()
	})
	return true
}

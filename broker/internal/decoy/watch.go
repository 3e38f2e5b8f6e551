//go:build linux

package decoy

import (
	"errors"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"sync"

	"golang.org/x/sys/unix"
)

// Watch notices who opens decoys. Each has a lease on it: the kernel has whoever opens the file wait until the lease is
// given back, whatever the call, the engine and the mount are. Asking for attributes breaks none.
type Watch struct {
	mu     sync.Mutex
	leases []*lease
	told   chan os.Signal
	stop   chan struct{}
}

// lease is that on one decoy.
type lease struct {
	fd     int
	opened bool
}

// Able says why nothing in dir can be watched, nil if it can.
func Able(dir string) error {
	f, err := os.CreateTemp(dir, "lease-*")
	if err != nil {
		return err
	}
	defer f.Close()
	defer os.Remove(f.Name())
	_, err = unix.FcntlInt(f.Fd(), unix.F_SETLEASE, unix.F_WRLCK)
	return leaseError(err)
}

func leaseError(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("the kernel gives no lease on a file of the session's folder: %w", err)
}

// New watches files, by their paths on the host. opened is called with the number of one when somebody waits for it,
// once, in a goroutine of its own.
func New(files []string, opened func(n int)) (*Watch, error) {
	w := &Watch{told: make(chan os.Signal, 1), stop: make(chan struct{})}
	signal.Notify(w.told, unix.SIGIO) // which a lease that is to be given back sends
	for _, p := range files {
		fd, err := unix.Open(p, unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
		if err == nil {
			w.leases = append(w.leases, &lease{fd: fd})
			_ = unix.Fchmod(fd, 0o600) // as a secret's is
			_, err = unix.FcntlInt(uintptr(fd), unix.F_SETLEASE, unix.F_WRLCK)
			err = leaseError(err)
		}
		if err != nil {
			w.Close()
			return nil, fmt.Errorf("watching the decoy %s: %w", p, err)
		}
	}
	go func() {
		for {
			select {
			case <-w.told:
			case <-w.stop:
				return
			}
			for _, n := range w.broken() {
				go opened(n)
			}
		}
	}()
	return w, nil
}

// broken are the leases that somebody has begun to wait for since the last look.
func (w *Watch) broken() (out []int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for n, l := range w.leases {
		if !l.opened && l.broken() {
			l.opened = true
			out = append(out, n)
		}
	}
	return out
}

// broken says whether somebody has begun to wait for a decoy that is not released.
func (l *lease) broken() bool {
	if l.fd < 0 {
		return false
	}
	held, err := unix.FcntlInt(uintptr(l.fd), unix.F_GETLEASE, 0)
	return err != nil || held != unix.F_WRLCK
}

// Broken says whether somebody has begun to wait for a decoy that is not released, and may wait no longer: the kernel
// gives a lease up after a while (fs.lease-break-time).
func (w *Watch) Broken() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.ContainsFunc(w.leases, (*lease).broken)
}

// Release lets those go on that wait for a decoy, and everybody who opens it from now on.
func (w *Watch) Release(n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if l := w.leases[n]; l.fd >= 0 {
		_ = unix.Close(l.fd)
		l.fd = -1
	}
}

// Close ends the watch when nobody runs any more who could open a decoy. It returns what was opened.
func (w *Watch) Close() (opened []int) {
	signal.Stop(w.told)
	close(w.stop)
	w.broken()
	for n, l := range w.leases {
		if l.opened {
			opened = append(opened, n)
		}
		w.Release(n)
	}
	return opened
}

// Waiting says whether a thread of a process waits for a lease.
func Waiting(pid int) bool {
	task := "/proc/" + strconv.Itoa(pid) + "/task/"
	threads, err := os.ReadDir(task)
	for _, t := range threads {
		at, rerr := os.ReadFile(task + t.Name() + "/wchan")
		if err = errors.Join(err, rerr); err == nil && strings.HasSuffix(string(at), "break_lease") {
			return true
		}
	}
	return false
}

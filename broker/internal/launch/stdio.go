//go:build linux

package launch

import (
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"sbx.example/sbx/broker/internal/handover"
	"sbx.example/sbx/broker/plan"
	"sbx.example/sbx/shared/stage"
)

// stdio is what becomes of the caller's descriptors 0, 1 and 2.
type stdio struct {
	child  stage.Stdio
	theirs [3]*os.File // the ends of relays that the child gets
	ours   [3]*os.File
	caller [3]*os.File
	loan   *handover.Loan // of the caller's pipe
	passed atomic.Int64   // bytes that were copied
	wg     sync.WaitGroup
	mu     sync.Mutex
	err    error
}

// Classify says how each of the caller's descriptors is passed on: a terminal becomes the sandbox's own
// terminal, what handover permits (a pipe, a new file) is inherited, a file opened for reading is opened anew
// on a read-only mount. Directories are refused. Everything else (a socket, a device, a log) is inherited by
// nobody: the broker copies its bytes through a pipe, which Classify reports as Inherit too.
func Classify(files [3]*os.File, tty bool) (out [3]plan.Stdio, err error) {
	for i, f := range files {
		if out[i], err = classify(i, f, tty); err != nil {
			return out, err
		}
	}
	return out, nil
}

func classify(i int, f *os.File, tty bool) (plan.Stdio, error) {
	var st unix.Stat_t
	if f == nil || unix.Fstat(int(f.Fd()), &st) != nil {
		return plan.Null, nil
	}
	switch st.Mode & unix.S_IFMT {
	case unix.S_IFDIR:
		return "", fmt.Errorf("descriptor %d is a directory: redirect it to a file, a pipe or /dev/null", i)
	case unix.S_IFREG:
		flags, err := unix.FcntlInt(f.Fd(), unix.F_GETFL, 0)
		if err == nil && i == 0 && flags&unix.O_ACCMODE == unix.O_RDONLY && st.Nlink > 0 && sameName(f, &st) {
			return plan.Reopen, nil
		}
	case unix.S_IFCHR:
		if tty && IsTerminal(f) {
			return plan.Pty, nil
		}
		if st.Rdev == unix.Mkdev(1, 3) {
			return plan.Null, nil
		}
	}
	return plan.Inherit, nil
}

// LeadsOn says whether what is written to a file goes to somebody outside of sbx who may show it on any terminal: into
// a pipe, a socket or a device that is no terminal itself.
func LeadsOn(f *os.File) bool {
	var st unix.Stat_t
	if f == nil || IsTerminal(f) || unix.Fstat(int(f.Fd()), &st) != nil {
		return false
	}
	switch st.Mode & unix.S_IFMT {
	case unix.S_IFREG:
		return false
	case unix.S_IFCHR:
		return st.Rdev != unix.Mkdev(1, 3) // the null device
	}
	return true
}

// sameName says whether the descriptor's file still has the name that it was opened by.
func sameName(f *os.File, st *unix.Stat_t) bool {
	name, err := os.Readlink(fmt.Sprintf("/proc/self/fd/%d", f.Fd()))
	if err != nil {
		return false
	}
	var now unix.Stat_t
	return unix.Lstat(name, &now) == nil && now.Dev == st.Dev && now.Ino == st.Ino
}

// prepareStdio makes what the child gets. says: see Options.
func prepareStdio(p *plan.Plan, files [3]*os.File, says bool) (*stdio, error) {
	s := &stdio{child: stage.Stdio{-1, -1, -1}, caller: files}
	for i, kind := range p.Stdio {
		if kind != plan.Inherit && kind != plan.Reopen {
			continue
		}
		f := files[i]
		if f == nil {
			var err error
			if f, err = os.OpenFile(os.DevNull, os.O_RDWR, 0); err != nil {
				s.close()
				return nil, err
			}
			s.theirs[i], files[i] = f, f
		}
		if kind == plan.Reopen || handover.Direct(i, f) && !(says && written(s.caller[2]) && handover.Same(f, s.caller[2])) {
			s.child[i] = int(f.Fd())
			continue
		}
		if i == 2 && s.theirs[1] != nil && handover.Same(f, files[1]) {
			s.child[2] = s.child[1]
			continue
		}
		r, w, err := os.Pipe()
		if err != nil {
			s.close()
			return nil, fmt.Errorf("making a pipe for descriptor %d: %w", i, err)
		}
		if i == 0 {
			s.theirs[i], s.ours[i] = r, w
		} else {
			s.theirs[i], s.ours[i] = w, r
		}
		s.child[i] = int(s.theirs[i].Fd())
	}
	return s, nil
}

func (s *stdio) closeChildSide() {
	for i, f := range s.theirs {
		if f != nil {
			f.Close()
			s.theirs[i] = nil
		}
	}
}

// relay copies between the caller's descriptors and the pipes that stand for them.
func (s *stdio) relay() {
	if s.ours[0] != nil {
		s.loan = handover.Feed(s.caller[0], s.ours[0])
	}
	for i := 1; i < 3; i++ {
		if s.ours[i] == nil {
			continue
		}
		s.wg.Add(1)
		go func() {
			defer s.wg.Done()
			to, err := renumbered(s.caller[i])
			if err == nil {
				defer to.Close()
				_, err = io.Copy(counted{to, &s.passed}, s.ours[i])
			}
			if err != nil {
				s.failed(i, err)
			}
		}()
	}
}

// counted counts what is written to a file.
type counted struct {
	io.Writer
	n *atomic.Int64
}

func (c counted) Write(b []byte) (int, error) {
	n, err := c.Writer.Write(b)
	c.n.Add(int64(n))
	return n, err
}

// written says whether what was written to a file stands there, to be read and written over by whoever has it. A pipe
// is handed over: what is in it is whose reads first, and to copy it would cost more than half a start.
func written(f *os.File) bool {
	var st unix.Stat_t
	return f != nil && unix.Fstat(int(f.Fd()), &st) == nil && st.Mode&unix.S_IFMT == unix.S_IFREG
}

// renumbered is a file under another number: Go has a process die that writes into a pipe without a reader by number 1
// or 2, and it is the program that is to hear of that.
func renumbered(f *os.File) (*os.File, error) {
	fd, err := unix.FcntlInt(f.Fd(), unix.F_DUPFD_CLOEXEC, 3)
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(fd), f.Name()), nil
}

// failed notes that nothing more can be written, and has the program know it: its next write fails.
func (s *stdio) failed(i int, err error) {
	s.ours[i].Close()
	if !errors.Is(err, unix.EPIPE) { // else a reader has left, who is told nothing
		s.mu.Lock()
		s.err = fmt.Errorf("writing to descriptor %d: %w", i, err)
		s.mu.Unlock()
	}
}

// drain waits until everything that the program wrote has been passed on, and says why that could not be. Once urgent
// is closed it waits no longer than somebody reads.
func (s *stdio) drain(urgent <-chan struct{}) error {
	s.loan.End()
	if s.ours[1] == nil && s.ours[2] == nil {
		return s.err
	}
	done := make(chan struct{})
	go func() { s.wg.Wait(); close(done) }()
	select {
	case <-done:
		return s.err
	case <-urgent:
	}
	for {
		before := s.passed.Load()
		select {
		case <-done:
			return s.err
		case <-time.After(UnreadFor):
			if s.passed.Load() == before {
				return errors.New("nobody reads it")
			}
		}
	}
}

func (s *stdio) close() {
	for _, f := range append(s.theirs[:], s.ours[:]...) {
		if f != nil {
			f.Close()
		}
	}
}

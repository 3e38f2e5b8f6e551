package launch

import (
	"fmt"
	"io"
	"os"
	"sync"

	"golang.org/x/sys/unix"

	"sbx/shared/plan"
	"sbx/shared/stage"
)

// stdio is what becomes of the caller's descriptors 0, 1 and 2.
type stdio struct {
	child  stage.Stdio
	theirs [3]*os.File // the ends of relays that the child gets
	ours   [3]*os.File
	caller [3]*os.File
	wg     sync.WaitGroup
}

// Classify says how each of the caller's descriptors is passed on: a terminal becomes the sandbox's own
// terminal, a pipe or a file opened for writing is inherited, a file opened for reading is opened anew
// on a read-only mount. Directories are refused. Everything else (a socket, a device) is inherited by
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
		if tty && isTerminal(f) {
			return plan.Pty, nil
		}
		if st.Rdev == unix.Mkdev(1, 3) {
			return plan.Null, nil
		}
	}
	return plan.Inherit, nil
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

// direct says whether a descriptor can be handed over as it is: pipes, and files that were opened for
// writing, which is what the caller's redirection asked for.
func direct(i int, f *os.File) bool {
	var st unix.Stat_t
	if unix.Fstat(int(f.Fd()), &st) != nil {
		return false
	}
	switch st.Mode & unix.S_IFMT {
	case unix.S_IFIFO:
		return true
	case unix.S_IFREG:
		flags, _ := unix.FcntlInt(f.Fd(), unix.F_GETFL, 0)
		return flags&unix.O_ACCMODE != unix.O_RDONLY
	}
	return false
}

func prepareStdio(p *plan.Plan, files [3]*os.File) (*stdio, error) {
	s := &stdio{child: stage.Stdio{-1, -1, -1}, caller: files}
	for i, kind := range p.Stdio {
		if kind != plan.Inherit && kind != plan.Reopen {
			continue
		}
		f := files[i]
		if kind == plan.Reopen || direct(i, f) {
			s.child[i] = int(f.Fd())
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
		go func() {
			_, _ = io.Copy(s.ours[0], s.caller[0])
			s.ours[0].Close()
		}()
	}
	for i := 1; i < 3; i++ {
		if s.ours[i] == nil {
			continue
		}
		s.wg.Add(1)
		go func() {
			defer s.wg.Done()
			_, _ = io.Copy(s.caller[i], s.ours[i])
		}()
	}
}

// drain waits until everything that the program wrote has been passed on.
func (s *stdio) drain() { s.wg.Wait() }

func (s *stdio) close() {
	for _, f := range append(s.theirs[:], s.ours[:]...) {
		if f != nil {
			f.Close()
		}
	}
}

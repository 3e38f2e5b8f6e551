//go:build linux

package handover

import (
	"errors"
	"fmt"
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// Direct says whether a program may get a file itself as descriptor i.
func Direct(i int, f *os.File) bool { return Check(i, int(f.Fd())) == nil && !lent(i, f) }

func lent(i int, f *os.File) bool {
	var st unix.Stat_t
	return unix.Fstat(int(f.Fd()), &st) == nil && Lent(uintptr(i), &st)
}

// Loan shows a program what stands in a pipe that others outside may read, too, and takes from there what the program
// has read and no more: who reads it next finds the rest, as if the program had read it itself. It does not get that
// pipe. By /proc/self/fd it could write into it, and a shell that reads its commands there would run them.
type Loan struct {
	from, to, null *os.File
	shown          int // bytes at the beginning of from that were put into to and not taken yet
	end            *os.File
	done           chan struct{}
}

// Feed has a program that reads another pipe hear what comes from a file of the caller's, or from what is none. A pipe
// is lent.
func Feed(from io.Reader, to *os.File) *Loan {
	if f, ok := from.(*os.File); ok && lent(0, f) {
		if l, err := lend(f, to); err == nil {
			return l
		}
	}
	go func() {
		_, _ = io.Copy(to, from)
		to.Close()
	}()
	return nil
}

// lend shows what comes from a pipe in another, until End, the first one's end, or when nobody can read the other any
// more. That one is the loan's from now on.
func lend(from, to *os.File) (*Loan, error) {
	if err := onePage(to); err != nil {
		return nil, fmt.Errorf("making a pipe hold one page: %w", err)
	}
	null, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	if err != nil {
		return nil, err
	}
	fd, err := unix.Eventfd(0, unix.EFD_CLOEXEC)
	if err != nil {
		null.Close()
		return nil, fmt.Errorf("making an eventfd: %w", err)
	}
	l := &Loan{from: from, to: to, null: null, end: os.NewFile(uintptr(fd), "end"), done: make(chan struct{})}
	go func() {
		defer close(l.done)
		defer to.Close()
		for l.step() {
		}
		l.consume()
	}()
	return l, nil
}

// onePage has a pipe hold one piece at a time, so that there is room exactly when all that was shown is read. The
// program can make it larger: room says nothing then.
func onePage(to *os.File) error {
	_, err := unix.FcntlInt(to.Fd(), unix.F_SETPIPE_SZ, os.Getpagesize())
	return err
}

// End ends the loan.
func (l *Loan) End() {
	if l == nil {
		return
	}
	_, _ = l.end.Write([]byte{1, 0, 0, 0, 0, 0, 0, 0})
	<-l.done
	l.end.Close()
	l.null.Close()
}

// pause is between two looks at a pipe of whose room nothing can be concluded, in milliseconds.
const pause = 20

// step shows the next piece when the one before has been read, and only then: a piece that is shown twice is read
// twice. False: there will be no further one.
func (l *Loan) step() bool {
	if !l.wait(l.to, unix.POLLOUT, -1) {
		return false
	}
	if l.consume(); l.shown > 0 {
		_ = onePage(l.to) // not while more than a page is in it
		return l.wait(l.to, 0, pause)
	}
	if !l.wait(l.from, unix.POLLIN, -1) {
		return false
	}
	n, err := unix.Tee(int(l.from.Fd()), int(l.to.Fd()), os.Getpagesize(), unix.SPLICE_F_NONBLOCK)
	l.shown = int(max(n, 0))
	return n > 0 || errors.Is(err, unix.EAGAIN) || errors.Is(err, unix.EINTR)
}

// wait waits for a pipe, or for that many milliseconds. False: the loan ends.
func (l *Loan) wait(f *os.File, events int16, timeout int) bool {
	for {
		fds := []unix.PollFd{{Fd: int32(l.end.Fd()), Events: unix.POLLIN}, {Fd: int32(l.to.Fd())},
			{Fd: int32(f.Fd()), Events: events}}
		n, err := unix.Poll(fds, timeout)
		switch {
		case errors.Is(err, unix.EINTR):
		case err != nil, fds[0].Revents != 0, fds[1].Revents&unix.POLLERR != 0:
			return false
		case n == 0, fds[2].Revents != 0:
			return true
		}
	}
}

// consume takes from the pipe what has been read of what was shown. The rest remains shown.
func (l *Loan) consume() {
	left, err := unix.IoctlGetInt(int(l.to.Fd()), unix.TIOCINQ)
	if err != nil {
		left = 0
	}
	for n := l.shown - left; n > 0; {
		got, err := unix.Splice(int(l.from.Fd()), nil, int(l.null.Fd()), nil, n, unix.SPLICE_F_NONBLOCK)
		if got <= 0 && !errors.Is(err, unix.EINTR) {
			break
		}
		n -= int(max(got, 0))
	}
	l.shown = min(l.shown, left)
}

//go:build linux

package prompt

import (
	"context"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sys/unix"
)

// TestNobodyWaitsForAnInterrupt: while a program is made to hear of Ctrl-C the queue is open to everybody, the question
// is settled, and whoever stops waiting because of it was denied by the person. The control is the answer itself.
func TestNobodyWaitsForAnInterrupt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake()
		q := NewQueue(Options{})
		ctx, stop := context.WithCancel(t.Context())
		leaves, stays, comes := make(chan Answer, 1), make(chan Answer, 1), make(chan Answer, 1)
		go func() { leaves <- q.Ask(ctx, read("/a/b/c")) }()
		go func() { stays <- q.Ask(t.Context(), read("/a/b/c")) }()
		synctest.Wait()
		id := one(t, q).ID
		f.interrupts = func() {
			if !q.mu.TryLock() {
				t.Error("the queue is locked while the program hears of it")
				return
			}
			q.mu.Unlock()
			if err := q.Answer(id, Answer{Allow: true, By: BySocket}); err != ErrAnswered {
				t.Errorf("an answer meanwhile: %v", err)
			}
			stop()
			if a := <-leaves; a.Allow || a.By != ByTTY {
				t.Errorf("who stops waiting because of it was told %+v", a)
			}
			go func() { comes <- q.Ask(t.Context(), read("/a/b/c")) }()
			synctest.Wait()
			if again := one(t, q).ID; again == id {
				t.Error("what is asked meanwhile joined the settled question")
			}
		}
		(&TTY{Screen: f}).Start(t.Context(), q)
		time.Sleep(time.Second)
		f.keys <- interruptKey
		if a := <-stays; a.Allow || a.By != ByTTY {
			t.Errorf("who waited was told %+v", a)
		}
		if err := q.Answer(one(t, q).ID, Answer{Allow: true, By: BySocket}); err != nil {
			t.Error(err)
		}
		if a := <-comes; !a.Allow {
			t.Errorf("who asked meanwhile was told %+v", a)
		}
		if q.waiting != 0 {
			t.Errorf("%d wait when nobody does", q.waiting)
		}
		q.Close()
		time.Sleep(time.Minute)
	})
}

// TestInterruptOfFullInput: a program that reads nothing hears of Ctrl-C although its terminal takes no key more, where
// that makes signals. Interrupt waits for neither.
func TestInterruptOfFullInput(t *testing.T) {
	for _, signals := range []bool{true, false} {
		pty := interrupted(t, signals)
		fill(t, pty.master, pty.slave)
		done := make(chan struct{})
		go func() {
			(&Console{Guest: pty.master}).Interrupt()
			close(done)
		}()
		select {
		case <-done:
		case <-time.After(20 * interruptPatience):
			t.Fatal("Interrupt waits until somebody reads")
		}
		if heard := pty.heard(t); heard != signals {
			t.Errorf("the terminal makes signals: %v, the program has one: %v", signals, heard)
		}
		_ = unix.IoctlSetInt(int(pty.master.Fd()), unix.TCFLSH, unix.TCIOFLUSH) // lets go who writes
	}
}

// fill writes into a terminal that nobody reads until it takes no more.
func fill(t *testing.T, master, slave *os.File) {
	t.Helper()
	fd := int(slave.Fd())
	settings, err := unix.IoctlGetTermios(fd, unix.TCGETS)
	if err != nil {
		t.Fatal(err)
	}
	settings.Lflag &^= unix.ICANON | unix.ECHO
	if err := unix.IoctlSetTermios(fd, unix.TCSETS, settings); err != nil {
		t.Fatal(err)
	}
	for written := 0; ; {
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(master.Fd()), Events: unix.POLLOUT}}, 0)
		if err != nil && err != unix.EINTR {
			t.Fatal(err)
		}
		if n > 0 {
			n, err := unix.Write(int(master.Fd()), []byte("typed"))
			if written += n; err != nil {
				t.Fatal(err)
			}
			continue
		}
		if there, err := unix.IoctlGetInt(fd, unix.TIOCINQ); err != nil || there >= 4095 { // the line discipline's own
			if err != nil || written <= there {
				t.Fatalf("%d bytes of %d: %v", there, written, err)
			}
			return
		}
	}
}

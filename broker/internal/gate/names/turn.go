//go:build linux

package names

import (
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// maxTurn bounds how long a session waits for the others: one may be stopped, or wait for a file system that does not
// answer.
const maxTurn = 2 * time.Second

// Turn is what a session takes among all that know its file (see guard.Session). Who holds the file's lock has it, so
// nobody inside may reach that.
type Turn struct{ f *os.File }

// OpenTurn opens the file, or makes it. Without it the turn cannot be had.
func OpenTurn(file string) Turn {
	f, err := os.OpenFile(file, os.O_RDWR|os.O_CREATE|unix.O_NOFOLLOW, 0o600)
	if err != nil {
		return Turn{}
	}
	return Turn{f}
}

// Take takes the turn and returns what gives it back; nil: it cannot be had now. Calls come one at a time.
func (t Turn) Take() (done func()) {
	lock := func(how int) error { return unix.Flock(int(t.f.Fd()), how) }
	for end := time.Now().Add(maxTurn); ; time.Sleep(100 * time.Microsecond) {
		switch err := lock(unix.LOCK_EX | unix.LOCK_NB); {
		case err == nil:
			return func() { _ = lock(unix.LOCK_UN) }
		case err != unix.EWOULDBLOCK && err != unix.EINTR || time.Now().After(end):
			return nil
		}
	}
}

// Close has nobody take it any more.
func (t Turn) Close() { _ = t.f.Close() }

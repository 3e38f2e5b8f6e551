//go:build linux

package names

import (
	"time"

	"golang.org/x/sys/unix"
)

// maxTurn bounds how long a session waits for the others: one may be stopped, or wait for a file system that does not
// answer.
const maxTurn = 2 * time.Second

// Turn returns what takes the turn among all sessions that know the file (see guard.Session). Who holds the file's lock
// has it, so nobody inside may reach that. Calls come one at a time.
func Turn(file string) func() (done func()) {
	fd, err := unix.Open(file, unix.O_RDWR|unix.O_CREAT|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return func() func() { return nil }
	}
	return func() func() {
		for end := time.Now().Add(maxTurn); ; time.Sleep(100 * time.Microsecond) {
			switch err := unix.Flock(fd, unix.LOCK_EX|unix.LOCK_NB); {
			case err == nil:
				return func() { _ = unix.Flock(fd, unix.LOCK_UN) }
			case err != unix.EWOULDBLOCK && err != unix.EINTR || time.Now().After(end):
				return nil
			}
		}
	}
}

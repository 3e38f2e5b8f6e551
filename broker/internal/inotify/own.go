//go:build linux

package inotify

import (
	"cmp"
	"os"
	"sync"

	"golang.org/x/sys/unix"
)

// Own reads an instance and knows what of that a program has caused itself. The caller sees to its locks.
type Own[D comparable] struct {
	Expected[D]
	read, followed uint64 // bytes of what was reported, and of what was followed of that
}

// Read reads more of fd, and says where in all that was reported it begins. All before that was followed.
func (o *Own[D]) Read(fd int, buf []byte) (n int, at uint64, err error) {
	at, o.followed = o.read, o.read
	if n, err = unix.Read(fd, buf); err == nil {
		o.read += uint64(n)
	} else if err == unix.EAGAIN {
		o.Forget()
	}
	return n, at, err
}

// Wait is Read of a file in which the runtime waits, with its lock held while it reads.
func (o *Own[D]) Wait(f *os.File, lock sync.Locker, buf []byte) (n int, at uint64, err error) {
	raw, err := f.SyscallConn()
	if err != nil {
		return 0, 0, err
	}
	closed := raw.Read(func(fd uintptr) bool {
		lock.Lock()
		defer lock.Unlock()
		n, at, err = o.Read(int(fd), buf)
		return err != unix.EAGAIN
	})
	return n, at, cmp.Or(closed, err)
}

// End is for when what was begun is done: all events that it caused are reported by fd.
func (o *Own[D]) End(fd int, dir D, name string, masks []uint32) {
	last := o.read
	if unread, err := unix.IoctlGetInt(fd, unix.TIOCINQ); err == nil { // else it is over
		last += uint64(unread)
	}
	o.Expected.End(dir, name, masks, last)
	if last == o.followed {
		o.Forget()
	}
}

//go:build linux

package writes

import (
	"syscall"

	"golang.org/x/sys/unix"

	"sbx.example/sbx/broker/internal/guard"
)

// witness tells of a name that is about to be made, written or taken away.
func (j *job) witness(n *name) {
	g := &n.root.judge
	dir, base := n.split()
	fd := -1
	j.Session.Note(guard.Naming{Place: g.of(n).place, Name: base, Mkdir: j.d.op == "mkdir", Path: n.onHost(),
		Rel: n.root.above + n.path(), Dir: func() (guard.ID, int) {
			var e syscall.Errno
			if fd, e = openAt(g.tree, []byte(dir+"\x00"), unix.O_PATH|unix.O_DIRECTORY, 0); e != 0 {
				fd = -1
				return guard.ID{}, fd
			}
			return idOf(fd, ""), fd
		}})
	if fd >= 0 {
		unix.Close(fd)
	}
}

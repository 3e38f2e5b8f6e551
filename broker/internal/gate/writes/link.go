//go:build linux

package writes

import (
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"sbx.example/sbx/broker/internal/gate/names"
)

// nameless returns the object of a link whose source is a descriptor, if that is a file opened through one of the
// trees: what was judged when it was opened may get a name. It is closed by whoever gets it.
func (j *job) nameless(p string) (int, bool) {
	where := ""
	switch {
	case p == "" && j.flags&unix.AT_EMPTY_PATH != 0:
		where = strconv.Itoa(int(int32(uint32(j.call.Arg(int(j.d.dir))))))
	case j.flags&unix.AT_SYMLINK_FOLLOW != 0:
		for _, prefix := range [...]string{"/proc/self/fd/", "/proc/thread-self/fd/", "/dev/fd/"} {
			if rest, ok := strings.CutPrefix(p, prefix); ok && !strings.Contains(rest, "/") {
				where = rest
			}
		}
	}
	if n, err := strconv.ParseUint(where, 10, 31); err != nil || where == "" {
		return -1, false
	} else {
		where = strconv.FormatUint(n, 10)
	}
	fd, e := j.callers.open(j.call, "fd/"+where)
	if e != 0 {
		return -1, false
	}
	for i := range j.roots {
		if mountOf(fd) == j.roots[i].mount && (j.InPlace == nil || isNameless(fd)) {
			return fd, true
		}
	}
	unix.Close(fd)
	return -1, false
}

// linkNameless gives an object a name.
func (j *job) linkNameless(fd int) bool {
	to := j.named(j.d.dir2, j.d.path2, j.mem[1][:], false)
	return j.makeAt(to, func(to *name) syscall.Errno {
		if mountOf(fd) != to.root.mount {
			return unix.ELOOP
		}
		j.witness(to)
		return j.linkTo(fd, to)
	})
}

func (j *job) linkTo(fd int, to *name) syscall.Errno {
	dir, base, e := to.parent()
	if e != 0 {
		return e
	}
	defer to.closeParent(dir)
	return at2(unix.SYS_LINKAT, unix.AT_FDCWD, nulled(ownFd(fd)), dir, nulled(base), unix.AT_SYMLINK_FOLLOW)
}

// ownFd is a path to what one of this process's descriptors is, whatever it is.
func ownFd(fd int) string { return names.FdPath(fd) + "\x00" }

// mountOf tells mounts apart, also of the same object.
func mountOf(fd int) uint64 {
	var st unix.Statx_t
	if unix.Statx(fd, "", unix.AT_EMPTY_PATH|unix.AT_STATX_DONT_SYNC, unix.STATX_MNT_ID, &st) != nil {
		return 0
	}
	return st.Mnt_id
}

package host

import (
	"os"

	"golang.org/x/sys/unix"
)

const oPath = unix.O_PATH

// openPlain opens p, in whose whole path there is no link: with one it is ELOOP.
func openPlain(p string, flags int) (int, error) {
	how := unix.OpenHow{Flags: uint64(flags | unix.O_CLOEXEC), Resolve: unix.RESOLVE_NO_SYMLINKS |
		unix.RESOLVE_NO_MAGICLINKS}
	for {
		fd, err := unix.Openat2(unix.AT_FDCWD, p, &how)
		switch err {
		case unix.EINTR, unix.EAGAIN:
			continue
		case unix.ENOSYS: // before Linux 5.6, where bubblewrap mounts, and the mounts are looked at
			return unix.Open(p, flags|unix.O_CLOEXEC, 0)
		}
		return fd, err
	}
}

// lstatPlain looks at p itself, in whose path there is no other link. What is missing costs no more than by lstat(2).
func lstatPlain(p string) (Stat, error) {
	fd, err := openPlain(p, unix.O_PATH|unix.O_NOFOLLOW)
	if err != nil {
		return Stat{}, &os.PathError{Op: "lstat", Path: p, Err: err}
	}
	defer unix.Close(fd)
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return Stat{}, &os.PathError{Op: "lstat", Path: p, Err: err}
	}
	return statOf(&st), nil
}

package host

import (
	"os"

	"golang.org/x/sys/unix"
)

const oPath = unix.O_PATH

// OpenPlain opens p and follows no link: where programs of a sandbox may make names, one could lead anywhere
// (openat2(2), Linux 5.6). With one it is ELOOP; with O_PATH and O_NOFOLLOW, p may be a link itself.
func OpenPlain(p string, flags int) (int, error) {
	return Openat2(unix.AT_FDCWD, p, &unix.OpenHow{Flags: uint64(flags | unix.O_CLOEXEC),
		Resolve: unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS})
}

// Openat2 is openat2(2), done again where a signal has interrupted it or a rename has raced with the walk (EAGAIN).
func Openat2(dir int, name string, how *unix.OpenHow) (int, error) {
	for {
		fd, err := unix.Openat2(dir, name, how)
		if err != unix.EINTR && err != unix.EAGAIN {
			return fd, err
		}
	}
}

// openToPlan is OpenPlain. Before Linux 5.6 bubblewrap mounts, and what it has mounted is compared with the plan.
func openToPlan(p string, flags int) (int, error) {
	fd, err := OpenPlain(p, flags)
	if err == unix.ENOSYS {
		return unix.Open(p, flags|unix.O_CLOEXEC, 0)
	}
	return fd, err
}

// lstatPlain looks at p itself, in whose path there is no other link. What is missing costs no more than by lstat(2).
// Unless who serves it is asked, it is what the kernel knows.
func lstatPlain(p string, ask bool) (Stat, error) {
	fd, err := openToPlan(p, unix.O_PATH|unix.O_NOFOLLOW)
	if err != nil {
		return Stat{}, &os.PathError{Op: "lstat", Path: p, Err: err}
	}
	defer unix.Close(fd)
	if !ask {
		return statKnown(fd)
	}
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return Stat{}, &os.PathError{Op: "lstat", Path: p, Err: err}
	}
	return statOf(&st), nil
}

func statKnown(fd int) (Stat, error) {
	var st unix.Statx_t
	if err := unix.Statx(fd, "", unix.AT_EMPTY_PATH|unix.AT_NO_AUTOMOUNT|unix.AT_STATX_DONT_SYNC, unix.STATX_BASIC_STATS,
		&st); err != nil {
		return Stat{}, &os.PathError{Op: "statx", Err: err}
	}
	return Stat{typeOf(uint32(st.Mode)), unix.Mkdev(st.Dev_major, st.Dev_minor), st.Ino, uint64(st.Nlink), st.Uid,
		uint32(st.Mode) & 0o7777}, nil
}

package audit

import (
	"syscall"

	"golang.org/x/sys/unix"
)

// datagramSocket makes a socket of no name that never waits. Between the two calls another thread may start a program,
// which the lock of package syscall excludes.
func datagramSocket() (int, error) {
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_DGRAM, 0)
	if err != nil {
		return -1, err
	}
	unix.CloseOnExec(fd)
	if err := unix.SetNonblock(fd, true); err != nil {
		unix.Close(fd)
		return -1, err
	}
	return fd, nil
}

// renameNew renames in a directory, and replaces nothing (renameatx_np(2)).
func renameNew(dir int, from, to string) error {
	return unix.RenameatxNp(dir, from, dir, to, unix.RENAME_EXCL)
}

// syncData has a file on disk. fsync(2) leaves it in the drive's cache, this does not (fcntl(2)); what knows no such
// thing, as a network's file system, gets the other.
func syncData(fd int) error {
	if _, err := unix.FcntlInt(uintptr(fd), unix.F_FULLFSYNC, 0); err == nil {
		return nil
	}
	return unix.Fsync(fd)
}

// clearAppendOnly takes away what somebody has set by chflags(1): such a file cannot be removed. It is best effort.
func clearAppendOnly(fd int) {
	var st unix.Stat_t
	if unix.Fstat(fd, &st) == nil {
		_ = unix.Fchflags(fd, int(st.Flags)&^unix.UF_APPEND)
	}
}

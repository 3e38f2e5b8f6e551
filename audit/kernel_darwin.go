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

// setAppendOnly is best effort (chflags(2)): the owner can take the flag away again, so the hash chain alone must do.
func setAppendOnly(fd int, on bool) {
	var st unix.Stat_t
	if unix.Fstat(fd, &st) != nil {
		return
	}
	flags := int(st.Flags) &^ unix.UF_APPEND
	if on {
		flags |= unix.UF_APPEND
	}
	_ = unix.Fchflags(fd, flags)
}

package audit

import "golang.org/x/sys/unix"

// datagramSocket makes a socket of no name that never waits.
func datagramSocket() (int, error) {
	return unix.Socket(unix.AF_UNIX, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
}

// renameNew renames in a directory, and replaces nothing.
func renameNew(dir int, from, to string) error {
	return unix.Renameat2(dir, from, dir, to, unix.RENAME_NOREPLACE)
}

// syncData has the contents of a file on disk, and of its metadata what reading it takes.
func syncData(fd int) error { return unix.Fdatasync(fd) }

// fsAppend is FS_APPEND_FL, which x/sys lacks.
const fsAppend = 0x20

// clearAppendOnly takes away what somebody has set by chattr(1): such a file cannot be removed. It is best effort.
func clearAppendOnly(fd int) {
	if flags, err := unix.IoctlGetInt(fd, unix.FS_IOC_GETFLAGS); err == nil {
		_ = unix.IoctlSetPointerInt(fd, unix.FS_IOC_SETFLAGS, flags&^fsAppend)
	}
}

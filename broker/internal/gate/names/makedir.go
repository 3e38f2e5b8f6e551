//go:build linux

package names

import (
	"golang.org/x/sys/unix"

	"sbx.example/sbx/broker/internal/host"
)

// MakeDir makes a directory with the permissions of mode. What this process's own mask takes of them is given back
// through a descriptor: somebody may put another object there at once. A directory that is moved or removed at once
// has been made all the same.
func MakeDir(dir int, name string, mode uint32) error {
	mode &= 0o777
	if err := unix.Mkdirat(dir, name, mode); err != nil {
		return err
	}
	fd, err := OpenBeneath(dir, name, unix.O_PATH|unix.O_NOFOLLOW|unix.O_DIRECTORY, 0)
	if err != nil {
		return nil
	}
	defer unix.Close(fd)
	var st unix.Stat_t
	if unix.Fstat(fd, &st) != nil {
		return nil
	}
	if lost := mode &^ st.Mode & host.Umask(); lost != 0 {
		_ = unix.Fchmodat(unix.AT_FDCWD, FdPath(fd), st.Mode&0o7777|lost, 0)
	}
	return nil
}

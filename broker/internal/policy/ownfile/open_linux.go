package ownfile

import "golang.org/x/sys/unix"

// walkOnly opens a directory to walk on from it: it need not be readable.
const walkOnly = unix.O_PATH

// beneath opens a relative path below dir, following no link.
func beneath(dir int, rel string) (int, error) {
	fd, err := unix.Openat2(dir, rel, &unix.OpenHow{
		Flags:   unix.O_RDONLY | unix.O_NONBLOCK | unix.O_NOFOLLOW | unix.O_CLOEXEC | unix.O_NOCTTY,
		Resolve: unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_BENEATH | unix.RESOLVE_NO_MAGICLINKS,
	})
	if err == unix.ENOSYS { // in a sandbox
		return stepwise(dir, rel)
	}
	return fd, err
}

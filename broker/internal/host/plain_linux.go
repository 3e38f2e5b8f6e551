package host

import "golang.org/x/sys/unix"

// OpenPlain opens p and follows no link: where programs of a sandbox may make names, one could lead anywhere
// (openat2(2), Linux 5.6). With O_PATH and O_NOFOLLOW, p may be a link itself.
func OpenPlain(p string, flags int) (int, error) {
	how := unix.OpenHow{Flags: uint64(flags | unix.O_CLOEXEC),
		Resolve: unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS}
	for {
		fd, err := unix.Openat2(unix.AT_FDCWD, p, &how)
		if err != unix.EINTR && err != unix.EAGAIN { // EAGAIN: a rename raced with the walk
			return fd, err
		}
	}
}

package policy

import "golang.org/x/sys/unix"

// absent says whether the kernel knows without asking the file system that there is no such file: then nobody has to be
// afraid that it never answers.
func absent(root, rel string) bool {
	const resolveCached = 0x20 // RESOLVE_CACHED, openat2(2), kernel 5.12; others know nothing without asking
	dir, err := unix.Open(root, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return false
	}
	defer unix.Close(dir)
	fd, err := unix.Openat2(dir, rel, &unix.OpenHow{Flags: unix.O_PATH | unix.O_NOFOLLOW | unix.O_CLOEXEC,
		Resolve: unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_BENEATH | resolveCached})
	if err == nil {
		unix.Close(fd)
	}
	return err == unix.ENOENT
}

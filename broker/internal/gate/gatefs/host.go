package gatefs

import (
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
	"sbx/broker/internal/gate/fuse"
)

// beneath: no step of a host walk may follow a link or leave the directory it starts from.
const beneath = unix.RESOLVE_BENEATH | unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS

// openBeneath opens a relative path below dir.
func openBeneath(dir int, rel string, flags int, mode uint32, more ...uint64) (int, error) {
	how := unix.OpenHow{Flags: uint64(flags | unix.O_CLOEXEC | unix.O_NOCTTY), Resolve: beneath}
	for _, m := range more {
		how.Resolve |= m
	}
	if flags&unix.O_PATH != 0 {
		how.Flags &^= unix.O_NOCTTY
	}
	if flags&unix.O_CREAT != 0 {
		how.Mode = uint64(mode)
	}
	for {
		fd, err := unix.Openat2(dir, rel, &how)
		if err != unix.EINTR && err != unix.EAGAIN { // EAGAIN: a rename on the host raced with the walk
			return fd, err
		}
	}
}

// holdBeneath opens a relative path below dir as an object, whatever its type, without following it.
func holdBeneath(dir int, rel string) (int, error) {
	return openBeneath(dir, rel, unix.O_PATH|unix.O_NOFOLLOW, 0)
}

func statName(dir int, name string, st *unix.Stat_t) error {
	return unix.Fstatat(dir, name, st, unix.AT_SYMLINK_NOFOLLOW|unix.AT_NO_AUTOMOUNT)
}

// reopen opens the object behind an O_PATH descriptor; the object is fixed, so no name can be swapped meanwhile.
func (s *Server) reopen(fd, flags int) (int, error) {
	for {
		n, err := unix.Openat(s.procfd, strconv.Itoa(fd), flags&^unix.O_NOFOLLOW|unix.O_CLOEXEC|unix.O_NOCTTY, 0)
		if err != unix.EINTR {
			return n, err
		}
	}
}

func procPath(fd int) string {
	return "/proc/self/fd/" + strconv.Itoa(fd)
}

// readUmask learns the process's umask without changing it, which would race with other threads.
func readUmask() uint32 {
	fd, err := unix.Open("/proc/self/status", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return 0
	}
	defer unix.Close(fd)
	b := make([]byte, 512) // it is in the second line
	n, _ := unix.Read(fd, b)
	for line := range strings.SplitSeq(string(b[:max(n, 0)]), "\n") {
		if v, ok := strings.CutPrefix(line, "Umask:"); ok {
			m, err := strconv.ParseUint(strings.TrimSpace(v), 8, 32)
			if err == nil {
				return uint32(m)
			}
		}
	}
	return 0
}

// openFileBudget is how many O_PATH descriptors may be held for the kernel's cache before some are asked back.
func openFileBudget() int { return openFileLimit() / 2 }

func openFileLimit() int {
	var l unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_NOFILE, &l) != nil {
		return 1024
	}
	return int(min(l.Cur, 200_000))
}

func status(err error) fuse.Status {
	if err == nil {
		return fuse.OK
	}
	return fuse.ToStatus(err)
}

func errno(e unix.Errno) fuse.Status {
	return fuse.Status(e)
}

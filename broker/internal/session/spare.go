package session

import (
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"sbx/shared/stage"
)

// spareLayers moves the layers of the session in dir to spare if they are as they were made: then another session can have them, which saves both
// the trouble. It says whether they are gone from dir.
func spareLayers(dir, spare string, layers []stage.Dir) bool {
	for _, l := range layers {
		switch filepath.Base(l.Path) {
		case "work":
			_ = unix.Rmdir(l.Path + "/work") // the kernel's own
			fallthrough
		case "upper":
			if !fresh(l.Path) {
				return false
			}
		}
	}
	return unix.Renameat2(unix.AT_FDCWD, filepath.Join(dir, "overlay"), unix.AT_FDCWD, spare, unix.RENAME_NOREPLACE) == nil
}

// fresh says whether p is a directory of this user's alone, into which nobody has written anything and which nobody has changed.
func fresh(p string) bool {
	fd, err := unix.Open(p, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return false
	}
	defer unix.Close(fd)
	var st unix.Stat_t
	if unix.Fstat(fd, &st) != nil || st.Mode != unix.S_IFDIR|0o700 || int(st.Uid) != os.Getuid() {
		return false
	}
	if n, err := unix.Flistxattr(fd, nil); n > 0 || err != nil && err != unix.ENOTSUP {
		return false
	}
	var buf [4096]byte
	for {
		n, err := unix.ReadDirent(fd, buf[:])
		if err != nil {
			return false
		}
		if n == 0 {
			return true
		}
		if _, _, list := unix.ParseDirent(buf[:n], -1, nil); len(list) > 0 {
			return false
		}
	}
}

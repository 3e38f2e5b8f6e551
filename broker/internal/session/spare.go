package session

import (
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// spareLayers moves the layers in dir to spare if they are as they were made: then another session can have them, which saves both the trouble.
// It says whether they are gone from dir.
func spareLayers(dir, spare string) bool {
	top := filepath.Join(dir, "overlay")
	if !fresh(top) {
		return false
	}
	return unix.Renameat2(unix.AT_FDCWD, top, unix.AT_FDCWD, spare, unix.RENAME_NOREPLACE) == nil
}

// fresh says whether nobody has written anything into the layers below top, nor changed what they are.
func fresh(top string) bool {
	n := 0
	if !fresher(top, func(list []string) bool { n = len(list); return n > 0 }) {
		return false
	}
	none := func(list []string) bool { return len(list) == 0 }
	for i := 1; i <= n; i++ {
		layer := fmt.Sprintf("%s/%d", top, i)
		_ = unix.Rmdir(layer + "/work/work") // the kernel's own
		ok := fresher(layer, func(list []string) bool {
			for _, name := range list {
				if name != "upper" && name != "work" || !fresher(layer+"/"+name, none) {
					return false
				}
			}
			return true
		})
		if !ok {
			return false
		}
	}
	return true
}

// fresher says whether p is a directory of this user's alone, without attributes, and with entries that suit.
func fresher(p string, suit func([]string) bool) bool {
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
	var list []string
	buf := make([]byte, 4096)
	for {
		n, err := unix.ReadDirent(fd, buf)
		if err != nil {
			return false
		}
		if n == 0 {
			return suit(list)
		}
		_, _, list = unix.ParseDirent(buf[:n], -1, list)
	}
}

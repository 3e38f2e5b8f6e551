package host

import (
	"strings"

	"golang.org/x/sys/unix"
)

// EachEntry passes on what the open directory fd has, "." and ".." left out, until each has enough. It reads
// getdents64(2) itself: planning lists directories of hundreds of names and needs nothing but name and type.
func EachEntry(fd int, each func(Entry) bool) error {
	buf := make([]byte, 16<<10)
	for {
		n, err := unix.Getdents(fd, buf)
		if err == unix.EINTR {
			continue
		}
		if err != nil || n <= 0 {
			return err
		}
		for b := string(buf[:n]); len(b) > 19; { // struct linux_dirent64: ino, off (8 bytes each), reclen (2), type (1), name
			size := int(b[16]) | int(b[17])<<8
			if size < 20 || size > len(b) {
				break
			}
			name, _, _ := strings.Cut(b[19:size], "\x00")
			typ := entryType(b[18])
			b = b[size:]
			if name == "." || name == ".." {
				continue
			}
			if typ == unknown {
				typ = typeAt(fd, name)
			}
			if !each(Entry{name, typ}) {
				return nil
			}
		}
	}
}

func entryType(t byte) Type {
	switch t {
	case unix.DT_REG:
		return File
	case unix.DT_DIR:
		return Dir
	case unix.DT_LNK:
		return Link
	case unix.DT_SOCK:
		return Socket
	case unix.DT_UNKNOWN:
		return unknown
	}
	return Other
}

package host

import (
	"os"

	"golang.org/x/sys/unix"
)

// StampOf looks at the file behind a descriptor, or at name in the directory that it is.
func StampOf(fd int, name string) (Stamp, error) {
	var st unix.Stat_t
	var err error
	if name == "" {
		err = unix.Fstat(fd, &st)
	} else {
		err = unix.Fstatat(fd, name, &st, unix.AT_SYMLINK_NOFOLLOW)
	}
	if err != nil {
		return Stamp{}, &os.PathError{Op: "stat", Path: name, Err: err}
	}
	return Stamp{Type: typeOf(uint32(st.Mode)), Dev: uint64(st.Dev), Ino: st.Ino, Size: st.Size,
		Born: st.Btim.Nano(), Changed: st.Ctim.Nano()}, nil
}

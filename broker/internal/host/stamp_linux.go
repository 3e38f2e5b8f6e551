package host

import (
	"os"

	"golang.org/x/sys/unix"
)

// StampOf looks at the file behind a descriptor, or at name in the directory that it is.
func StampOf(fd int, name string) (Stamp, error) {
	flags := unix.AT_SYMLINK_NOFOLLOW | unix.AT_NO_AUTOMOUNT
	if name == "" {
		flags |= unix.AT_EMPTY_PATH
	}
	var st unix.Statx_t
	if err := unix.Statx(fd, name, flags, unix.STATX_BASIC_STATS|unix.STATX_BTIME, &st); err != nil {
		return Stamp{}, &os.PathError{Op: "statx", Path: name, Err: err}
	}
	s := Stamp{Type: typeOf(uint32(st.Mode)), Dev: unix.Mkdev(st.Dev_major, st.Dev_minor), Ino: st.Ino,
		Size:    int64(st.Size),
		Changed: st.Ctime.Sec*1e9 + int64(st.Ctime.Nsec)}
	if st.Mask&unix.STATX_BTIME != 0 {
		s.Born = st.Btime.Sec*1e9 + int64(st.Btime.Nsec)
	}
	return s, nil
}

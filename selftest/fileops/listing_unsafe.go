//go:build linux

package main

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"
)

// entry is a name of a directory, and where what follows it is found again.
type entry struct {
	name string
	next int64
}

// listing has the commands that read directories by descriptor, and what stands beside a file's contents.
func (w *worker) listing() map[string]command {
	return map[string]command{
		"names": func(a []string) (string, error) { // from where the descriptor stands
			fd, err := w.fd(a[0])
			if err != nil {
				return "", err
			}
			all, err := entries(fd)
			return fmt.Sprintf("%d: %s", len(all), sorted(words(all))), err
		},
		"rewind":   func(a []string) (string, error) { return w.with(a[0], rewind) },
		"seekback": w.seekBack,
		"listxattr": func(a []string) (string, error) {
			var b [1024]byte
			n, err := unix.Listxattr(a[0], b[:])
			return sorted(strings.Split(strings.Trim(string(b[:max(n, 0)]), "\x00"), "\x00")), err
		},
		"born": func(a []string) (string, error) { // whether the time at which a file was made is known
			var st unix.Statx_t
			err := unix.Statx(unix.AT_FDCWD, a[0], 0, unix.STATX_BTIME, &st)
			return fmt.Sprint(st.Mask&unix.STATX_BTIME != 0 && st.Btime.Sec > 0), err
		},
		"filesystem": func(a []string) (string, error) {
			var st unix.Statfs_t
			err := unix.Statfs(a[0], &st)
			return fmt.Sprintf("%#x, names of %d, read-only %t", st.Type, st.Namelen, st.Flags&unix.ST_RDONLY != 0), err
		},
		"same": func(a []string) (string, error) { // whether a name is what a descriptor is open on
			var one, two unix.Stat_t
			if err := unix.Stat(a[1], &two); err != nil {
				return "", err
			}
			_, err := w.with(a[0], func(fd int) error { return unix.Fstat(fd, &one) })
			return fmt.Sprint(one.Dev == two.Dev && one.Ino == two.Ino), err
		},
		"fileflags": func(a []string) (string, error) {
			fd, err := w.fd(a[0])
			if err != nil {
				return "", err
			}
			n, err := unix.IoctlGetInt(fd, unix.FS_IOC_GETFLAGS)
			return fmt.Sprintf("%#x", n), err
		},
	}
}

func rewind(fd int) error {
	_, err := unix.Seek(fd, 0, unix.SEEK_SET)
	return err
}

func words(all []entry) (out []string) {
	for _, e := range all {
		out = append(out, e.name)
	}
	return out
}

// seekBack goes back to places all over a directory, and says whether what follows is what followed the first time.
func (w *worker) seekBack(a []string) (string, error) {
	fd, err := w.fd(a[0])
	if err != nil {
		return "", err
	}
	if err := rewind(fd); err != nil {
		return "", err
	}
	all, err := entries(fd)
	if err != nil {
		return "", err
	}
	for i := 0; i < len(all); i += 1 + len(all)/8 {
		if _, err := unix.Seek(fd, all[i].next, unix.SEEK_SET); err != nil {
			return "", err
		}
		rest, err := entries(fd)
		if err != nil {
			return "", err
		}
		if !slices.Equal(words(rest), words(all[i+1:])) {
			return fmt.Sprintf("after entry %d of %d comes something else", i+1, len(all)), nil
		}
	}
	return "the same", nil
}

// entries reads what is left of a directory, in the kernel's order, without "." and "..".
func entries(fd int) (out []entry, err error) {
	var b [2048]byte
	for {
		n, err := unix.Getdents(fd, b[:])
		if err != nil || n == 0 {
			return out, err
		}
		for at := 0; at < n; {
			d := (*unix.Dirent)(unsafe.Pointer(&b[at]))
			name := b[at+int(unsafe.Offsetof(d.Name)) : at+int(d.Reclen)]
			if i := bytes.IndexByte(name, 0); i >= 0 {
				name = name[:i]
			}
			if s := string(name); s != "." && s != ".." {
				out = append(out, entry{s, d.Off})
			}
			at += int(d.Reclen)
		}
	}
}

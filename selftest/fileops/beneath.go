//go:build linux

package main

import (
	"golang.org/x/sys/unix"
)

// beneath has the commands whose paths start at a directory's descriptor.
func (w *worker) beneath() map[string]command {
	two := func(do func(from int, a string, to int, b string) error) command { // directory, name, directory, name
		return func(a []string) (string, error) {
			return w.both([]string{a[0], a[2]}, func(from, to int) error { return do(from, a[1], to, a[3]) })
		}
	}
	one := func(do func(dir int, a []string) error) command { // directory, and what else there is
		return func(a []string) (string, error) {
			return w.with(a[0], func(dir int) error { return do(dir, a[1:]) })
		}
	}
	return map[string]command{
		"renameat":  two(func(f int, a string, t int, b string) error { return unix.Renameat(f, a, t, b) }),
		"linkat":    two(func(f int, a string, t int, b string) error { return unix.Linkat(f, a, t, b, 0) }),
		"mkdirat":   one(func(d int, a []string) error { return unix.Mkdirat(d, a[0], uint32(number(a[1]))) }),
		"symlinkat": one(func(d int, a []string) error { return unix.Symlinkat(a[0], d, a[1]) }),
		"chmodat":   one(func(d int, a []string) error { return unix.Fchmodat(d, a[0], uint32(number(a[1])), 0) }),
		"fchdir":    one(func(d int, _ []string) error { return unix.Fchdir(d) }),
		"linkempty": one(func(d int, a []string) error {
			return unix.Linkat(d, "", unix.AT_FDCWD, a[0], unix.AT_EMPTY_PATH)
		}),
		"openat2": func(a []string) (string, error) { // name, directory, path, flags, what the path may not do
			dir, err := w.fd(a[1])
			if err != nil {
				return "", err
			}
			how := unix.OpenHow{Flags: uint64(number(a[3])), Resolve: uint64(number(a[4]))}
			if how.Flags&unix.O_CREAT != 0 {
				how.Mode = 0o644
			}
			fd, err := unix.Openat2(dir, a[2], &how)
			if err == nil {
				w.fds[a[0]] = fd
			}
			return "", err
		},
		"handle": func(a []string) (string, error) { // of a file, and the file again by it
			h, mount, err := unix.NameToHandleAt(unix.AT_FDCWD, a[0], 0)
			if err != nil || mount == 0 {
				return "", err
			}
			return w.with(a[1], func(dir int) error {
				fd, err := unix.OpenByHandleAt(dir, h, unix.O_RDONLY)
				if err == nil {
					unix.Close(fd)
				}
				return err
			})
		},
		"deep": func(a []string) (string, error) { // directories, one in the other, each entered
			for range number(a[1]) {
				if err := unix.Mkdir(a[0], 0o755); err != nil {
					return "", err
				}
				if err := unix.Chdir(a[0]); err != nil {
					return "", err
				}
			}
			return "", nil
		},
	}
}

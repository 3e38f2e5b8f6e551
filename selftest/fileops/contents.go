//go:build linux

package main

import (
	"errors"
	"fmt"
	"net"
	"os/exec"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// locking has flock, record locks of processes and of open files, and leases.
func (w *worker) locking() map[string]command {
	record := func(cmd int) command { // descriptor, type, start, length
		return func(a []string) (string, error) {
			fd, err := w.fd(a[0])
			if err != nil {
				return "", err
			}
			l := unix.Flock_t{Type: int16(number(a[1])), Start: int64(number(a[2])), Len: int64(number(a[3]))}
			err = unix.FcntlFlock(uintptr(fd), cmd, &l)
			if err == nil && (cmd == unix.F_GETLK || cmd == unix.F_OFD_GETLK) {
				return fmt.Sprintf("type %d start %d len %d", l.Type, l.Start, l.Len), nil
			}
			return "", err
		}
	}
	return map[string]command{
		"flock": func(a []string) (string, error) {
			return w.with(a[0], func(fd int) error { return unix.Flock(fd, number(a[1])) })
		},
		"setlk":  record(unix.F_SETLK),
		"setlkw": record(unix.F_SETLKW),
		"getlk":  record(unix.F_GETLK),
		"ofdset": record(unix.F_OFD_SETLK),
		"ofdget": record(unix.F_OFD_GETLK),
		"lease": func(a []string) (string, error) {
			return w.with(a[0], func(fd int) error {
				_, err := unix.FcntlInt(uintptr(fd), unix.F_SETLEASE, number(a[1]))
				return err
			})
		},
	}
}

// transferring has what moves bytes.
func (w *worker) transferring() map[string]command {
	return map[string]command{
		"exec": func(a []string) (string, error) { // by its path alone
			return "", unwrapped((&exec.Cmd{Path: a[0], Args: a[:1]}).Run())
		},
		"write": func(a []string) (string, error) {
			return w.with(a[0], func(fd int) error { _, err := unix.Write(fd, []byte(a[1])); return err })
		},
		"pwrite": func(a []string) (string, error) {
			return w.with(a[0], func(fd int) error { _, err := unix.Pwrite(fd, []byte(a[1]), int64(number(a[2]))); return err })
		},
		"pread": w.pread,
		"ftruncate": func(a []string) (string, error) {
			return w.with(a[0], func(fd int) error { return unix.Ftruncate(fd, int64(number(a[1]))) })
		},
		"fallocate": func(a []string) (string, error) {
			return w.with(a[0], func(fd int) error {
				return unix.Fallocate(fd, uint32(number(a[1])), int64(number(a[2])), int64(number(a[3])))
			})
		},
		"seek": func(a []string) (string, error) {
			fd, err := w.fd(a[0])
			if err != nil {
				return "", err
			}
			n, err := unix.Seek(fd, int64(number(a[2])), number(a[1]))
			return fmt.Sprint(n), err
		},
		"lseek": func(a []string) (string, error) { // descriptor, where
			return w.with(a[0], func(fd int) error { _, err := unix.Seek(fd, int64(number(a[1])), unix.SEEK_SET); return err })
		},
		"munmap":  func(a []string) (string, error) { m := w.maps[a[0]]; delete(w.maps, a[0]); return done(unix.Munmap(m)) },
		"fsync":   func(a []string) (string, error) { return w.with(a[0], unix.Fsync) },
		"copy":    w.copyRange,
		"reflink": func(a []string) (string, error) { return w.both(a, unix.IoctlFileClone) },
		"mmap":    w.mmap,
		"mread": func(a []string) (string, error) {
			return w.mapped(a[0], func(m []byte) string { return fmt.Sprintf("%q", m[:number(a[1])]) })
		},
		"mwrite": func(a []string) (string, error) {
			return w.mapped(a[0], func(m []byte) string { copy(m, a[1]); return "" })
		},
		"msync": func(a []string) (string, error) { return done(unix.Msync(w.maps[a[0]], unix.MS_SYNC)) },
		"run": func(a []string) (string, error) {
			words := slices.DeleteFunc(slices.Clone(a), func(s string) bool { return s == "" })
			out, err := exec.Command(words[0], words[1:]...).CombinedOutput()
			return strings.TrimSpace(string(out)), unwrapped(err)
		},
	}
}

func unwrapped(err error) error {
	for err != nil {
		if e, ok := err.(unix.Errno); ok {
			return e
		}
		u, ok := err.(interface{ Unwrap() error })
		if !ok {
			return err
		}
		err = u.Unwrap()
	}
	return nil
}

func (w *worker) pread(a []string) (string, error) {
	fd, err := w.fd(a[0])
	if err != nil {
		return "", err
	}
	b := make([]byte, number(a[1]))
	n, err := unix.Pread(fd, b, int64(number(a[2])))
	return fmt.Sprintf("%q", b[:max(n, 0)]), err
}

// both is given two descriptors, to and from.
func (w *worker) both(a []string, do func(to, from int) error) (string, error) {
	to, err := w.fd(a[0])
	if err != nil {
		return "", err
	}
	return w.with(a[1], func(from int) error { return do(to, from) })
}

func (w *worker) copyRange(a []string) (string, error) {
	return w.both(a, func(to, from int) error {
		_, err := unix.CopyFileRange(from, nil, to, nil, number(a[2]), 0)
		return err
	})
}

// mapped lends a mapping. What is behind the end of its file is a bus error.
func (w *worker) mapped(name string, do func([]byte) string) (said string, err error) {
	m := w.maps[name]
	if m == nil {
		return "", errors.New("no such mapping")
	}
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if recover() != nil {
			err = errors.New("SIGBUS")
		}
	}()
	return do(m), nil
}

func (w *worker) mmap(a []string) (string, error) { // name, descriptor, flags, protection, size
	return w.with(a[1], func(fd int) error {
		m, err := unix.Mmap(fd, 0, number(a[4]), number(a[3]), number(a[2]))
		if err == nil {
			w.maps[a[0]] = m
		}
		return err
	})
}

// watching has events, pipes and sockets.
func (w *worker) watching() map[string]command {
	return map[string]command{
		"watch": func(a []string) (string, error) { // name, path, mask
			fd, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
			if err != nil {
				return "", err
			}
			w.fds[a[0]] = fd
			_, err = unix.InotifyAddWatch(fd, a[1], uint32(number(a[2])))
			return "", err
		},
		"events": w.events,
		"bind": func(a []string) (string, error) {
			fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
			if err != nil {
				return "", err
			}
			w.fds[a[0]] = fd
			if err := unix.Bind(fd, &unix.SockaddrUnix{Name: a[1]}); err != nil {
				return "", err
			}
			sa, err := unix.Getsockname(fd)
			if err != nil {
				return "", err
			}
			name := sa.(*unix.SockaddrUnix).Name
			if strings.HasPrefix(name, "@") { // a number that the kernel has chosen
				name = "@"
			}
			return name, unix.Listen(fd, 1)
		},
		"connect": func(a []string) (string, error) {
			c, err := net.DialTimeout("unix", a[0], time.Second)
			if err == nil {
				c.Close()
			}
			return "", unwrapped(err)
		},
	}
}

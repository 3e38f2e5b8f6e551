//go:build linux

package main

import (
	"fmt"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

func done(err error) (string, error) { return "", err }

// opening has the commands that give and take descriptors.
func (w *worker) opening() map[string]command {
	keep := func(name string, fd int, err error) (string, error) {
		if err == nil {
			w.fds[name] = fd
		}
		return "", err
	}
	return map[string]command{
		"open": func(a []string) (string, error) {
			fd, err := unix.Open(a[1], number(a[2]), uint32(number(a[3])))
			return keep(a[0], fd, err)
		},
		"openat": func(a []string) (string, error) { // name, directory, path, flags, mode
			dir, err := w.fd(a[1])
			if err != nil {
				return "", err
			}
			fd, err := unix.Openat(dir, a[2], number(a[3]), uint32(number(a[4])))
			return keep(a[0], fd, err)
		},
		"reopen": func(a []string) (string, error) {
			old, err := w.fd(a[1])
			if err != nil {
				return "", err
			}
			fd, err := unix.Open("/proc/self/fd/"+strconv.Itoa(old), number(a[2]), 0)
			return keep(a[0], fd, err)
		},
		"close": func(a []string) (string, error) {
			fd, err := w.fd(a[0])
			if err != nil {
				return "", err
			}
			delete(w.fds, a[0])
			return "", unix.Close(fd)
		},
		"chdir":  func(a []string) (string, error) { return done(unix.Chdir(a[0])) },
		"getcwd": func(a []string) (string, error) { return os.Getwd() },
		"umask":  func(a []string) (string, error) { return fmt.Sprintf("%04o", unix.Umask(number(a[0]))), nil },
		"flags": func(a []string) (string, error) {
			fd, err := w.fd(a[0])
			if err != nil {
				return "", err
			}
			fl, err := unix.FcntlInt(uintptr(fd), unix.F_GETFL, 0)
			fdfl, _ := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0)
			return fmt.Sprintf("%#o %d", fl&^unix.O_LARGEFILE, fdfl), err
		},
		"fdpath": func(a []string) (string, error) {
			fd, err := w.fd(a[0])
			if err != nil {
				return "", err
			}
			p, err := os.Readlink("/proc/self/fd/" + strconv.Itoa(fd))
			if i := strings.LastIndex(p, "/#"); i >= 0 { // a file without a name has a number of its own
				p = p[:i] + "/#"
			}
			return p, err
		},
	}
}

// naming has the commands that make, move and remove names.
func (w *worker) naming() map[string]command {
	at := unix.AT_FDCWD
	return map[string]command{
		"mkdir":   func(a []string) (string, error) { return done(unix.Mkdir(a[0], uint32(number(a[1])))) },
		"rmdir":   func(a []string) (string, error) { return done(unix.Rmdir(a[0])) },
		"unlink":  func(a []string) (string, error) { return done(unix.Unlink(a[0])) },
		"symlink": func(a []string) (string, error) { return done(unix.Symlink(a[0], a[1])) },
		"link":    func(a []string) (string, error) { return done(unix.Link(a[0], a[1])) },
		"linkfollow": func(a []string) (string, error) {
			return done(unix.Linkat(at, a[0], at, a[1], unix.AT_SYMLINK_FOLLOW))
		},
		"linkfd": func(a []string) (string, error) {
			fd, err := w.fd(a[0])
			if err != nil {
				return "", err
			}
			return done(unix.Linkat(at, "/proc/self/fd/"+strconv.Itoa(fd), at, a[1], unix.AT_SYMLINK_FOLLOW))
		},
		"rename": func(a []string) (string, error) { return done(unix.Renameat2(at, a[0], at, a[1], uint(number(a[2])))) },
		"mknod":  func(a []string) (string, error) { return done(unix.Mknod(a[0], uint32(number(a[1])|number(a[2])), 0)) },
		"unlinkat": func(a []string) (string, error) {
			dir, err := w.fd(a[0])
			if err != nil {
				return "", err
			}
			return done(unix.Unlinkat(dir, a[1], number(a[2])))
		},
		"rmtree": func(a []string) (string, error) { return done(os.RemoveAll(a[0])) },
		"many": func(a []string) (string, error) { // files in a directory, and a name that each begins with
			for i := range number(a[1]) {
				fd, err := unix.Open(a[0]+strconv.Itoa(i), unix.O_CREAT|unix.O_EXCL|unix.O_WRONLY, 0o644)
				if err != nil {
					return "", err
				}
				unix.Close(fd)
			}
			return "", nil
		},
	}
}

// describing has the commands about what names are, and that change attributes.
func (w *worker) describing() map[string]command {
	return map[string]command{
		"stat":     func(a []string) (string, error) { return described(a[0], 0) },
		"lstat":    func(a []string) (string, error) { return described(a[0], unix.AT_SYMLINK_NOFOLLOW) },
		"readlink": func(a []string) (string, error) { return os.Readlink(a[0]) },
		"list": func(a []string) (string, error) {
			entries, err := os.ReadDir(a[0])
			names := []string{}
			for _, e := range entries {
				names = append(names, e.Name())
			}
			return sorted(names), err
		},
		"access": func(a []string) (string, error) { return done(unix.Access(a[0], uint32(number(a[1])))) },
		"chmod":  func(a []string) (string, error) { return done(unix.Chmod(a[0], uint32(number(a[1])))) },
		"fchmod": func(a []string) (string, error) {
			return w.with(a[0], func(fd int) error { return unix.Fchmod(fd, uint32(number(a[1]))) })
		},
		"chown":   func(a []string) (string, error) { return done(unix.Chown(a[0], os.Getuid(), -1)) },
		"chother": func(a []string) (string, error) { return done(unix.Chown(a[0], 12345, -1)) },
		"lchown":  func(a []string) (string, error) { return done(unix.Lchown(a[0], -1, os.Getgid())) },
		"fchown": func(a []string) (string, error) {
			return w.with(a[0], func(fd int) error { return unix.Fchown(fd, -1, os.Getgid()) })
		},
		"utimes": func(a []string) (string, error) {
			ts := []unix.Timespec{{Sec: int64(number(a[1])), Nsec: 5}, {Sec: int64(number(a[1])), Nsec: 7}}
			return done(unix.UtimesNanoAt(unix.AT_FDCWD, a[0], ts, number(a[2])))
		},
		"futimes": func(a []string) (string, error) {
			return w.with(a[0], func(fd int) error {
				return unix.Futimes(fd, []unix.Timeval{{Sec: int64(number(a[1]))}, {Sec: int64(number(a[1]))}})
			})
		},
		"touch":    func(a []string) (string, error) { return done(unix.UtimesNanoAt(unix.AT_FDCWD, a[0], nil, 0)) },
		"truncate": func(a []string) (string, error) { return done(unix.Truncate(a[0], int64(number(a[1])))) },
		"setxattr": func(a []string) (string, error) { return done(unix.Setxattr(a[0], a[1], []byte(a[2]), number(a[3]))) },
		"fsetxattr": func(a []string) (string, error) {
			return w.with(a[0], func(fd int) error { return unix.Fsetxattr(fd, a[1], []byte(a[2]), number(a[3])) })
		},
		"removexattr": func(a []string) (string, error) { return done(unix.Removexattr(a[0], a[1])) },
		"getxattr": func(a []string) (string, error) {
			var b [256]byte
			n, err := unix.Getxattr(a[0], a[1], b[:])
			return string(b[:max(n, 0)]), err
		},
		"acl": func(a []string) (string, error) { // gives a user the right to read
			id := byte(number(a[1]))
			if a[1] == "me" {
				return done(unix.Setxattr(a[0], "system.posix_acl_access", acl(uint32(os.Getuid())), 0))
			}
			return done(unix.Setxattr(a[0], "system.posix_acl_access", acl(uint32(id)), 0))
		},
	}
}

// acl is a list of rights with one further user (struct posix_acl_xattr_entry).
func acl(uid uint32) []byte {
	b := []byte{2, 0, 0, 0}
	for _, e := range [][3]uint32{{1, 6, ^uint32(0)}, {2, 4, uid}, {4, 4, ^uint32(0)}, {16, 4, ^uint32(0)},
		{32, 4, ^uint32(0)}} {
		b = append(b, byte(e[0]), 0, byte(e[1]), 0, byte(e[2]), byte(e[2]>>8), byte(e[2]>>16), byte(e[2]>>24))
	}
	return b
}

func (w *worker) with(name string, do func(int) error) (string, error) {
	fd, err := w.fd(name)
	if err != nil {
		return "", err
	}
	return "", do(fd)
}

func described(p string, flags int) (string, error) {
	var st unix.Stat_t
	if err := unix.Fstatat(unix.AT_FDCWD, p, &st, flags); err != nil {
		return "", err
	}
	size := st.Size
	if st.Mode&unix.S_IFMT == unix.S_IFDIR {
		size = 0
	}
	return fmt.Sprintf("%06o %d links %d bytes mine %t", st.Mode, st.Nlink, size, int(st.Uid) == os.Getuid() &&
		int(st.Gid) == os.Getgid()), nil
}

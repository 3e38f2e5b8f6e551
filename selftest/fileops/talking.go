//go:build linux

package main

import (
	"fmt"
	"time"

	"golang.org/x/sys/unix"
)

// aligned has what goes past the page cache, and what moves bytes from one descriptor to another.
func (w *worker) aligned() map[string]command {
	return map[string]command{
		"dwrite": func(a []string) (string, error) { // descriptor, letter: a page of it
			return w.withPage(func(page []byte) (string, error) {
				for i := range page {
					page[i] = a[1][0]
				}
				return w.with(a[0], func(fd int) error { _, err := unix.Pwrite(fd, page, 0); return err })
			})
		},
		"dread": func(a []string) (string, error) {
			return w.withPage(func(page []byte) (string, error) {
				n := 0
				_, err := w.with(a[0], func(fd int) (err error) { n, err = unix.Pread(fd, page, 0); return err })
				return fmt.Sprintf("%d %q", n, page[:4]), err
			})
		},
		"sendfile": func(a []string) (string, error) { // to, from, how much
			return w.both(a, func(to, from int) error { _, err := unix.Sendfile(to, from, nil, number(a[2])); return err })
		},
		"splice": func(a []string) (string, error) { // through a pipe
			return w.both(a, func(to, from int) error { return splice(to, from, number(a[2])) })
		},
		"dedupe": func(a []string) (string, error) {
			return w.both(a, func(to, from int) error {
				r := unix.FileDedupeRange{Src_length: 4096, Info: []unix.FileDedupeRangeInfo{{Dest_fd: int64(to)}}}
				return unix.IoctlFileDedupeRange(from, &r)
			})
		},
		"fdatasync": func(a []string) (string, error) { return w.with(a[0], unix.Fdatasync) },
		"syncfs":    func(a []string) (string, error) { return w.with(a[0], unix.Syncfs) },
		"advise": func(a []string) (string, error) {
			return w.with(a[0], func(fd int) error { return unix.Fadvise(fd, 0, 0, unix.FADV_DONTNEED) })
		},
		"read": func(a []string) (string, error) {
			fd, err := w.fd(a[0])
			if err != nil {
				return "", err
			}
			b := make([]byte, number(a[1]))
			n, err := unix.Read(fd, b)
			return fmt.Sprintf("%q", b[:max(n, 0)]), err
		},
	}
}

// withPage lends a page of memory that begins where a page does.
func (w *worker) withPage(do func([]byte) (string, error)) (string, error) {
	page, err := unix.Mmap(-1, 0, 4096, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
	if err != nil {
		return "", err
	}
	defer func() { _ = unix.Munmap(page) }()
	return do(page)
}

func splice(to, from, n int) error {
	var p [2]int
	if err := unix.Pipe2(p[:], unix.O_CLOEXEC); err != nil {
		return err
	}
	defer unix.Close(p[0])
	defer unix.Close(p[1])
	if _, err := unix.Splice(from, nil, p[1], nil, n, 0); err != nil {
		return err
	}
	_, err := unix.Splice(p[0], nil, to, nil, n, 0)
	return err
}

// talking has sockets by name, and marks of fanotify.
func (w *worker) talking() map[string]command {
	return map[string]command{
		"dial": func(a []string) (string, error) { // name, path
			fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
			if err != nil {
				return "", err
			}
			w.fds[a[0]] = fd
			return "", unix.Connect(fd, &unix.SockaddrUnix{Name: a[1]})
		},
		"accept": func(a []string) (string, error) { // name, socket
			return w.with(a[1], func(fd int) error { // who has connected is there already
				c, _, err := unix.Accept4(fd, unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK)
				w.fds[a[0]] = c
				return err
			})
		},
		"datagrams": func(a []string) (string, error) { // a socket with a name that takes messages
			fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
			if err != nil {
				return "", err
			}
			w.fds[a[0]] = fd
			return "", unix.Bind(fd, &unix.SockaddrUnix{Name: a[1]})
		},
		"sendto": func(a []string) (string, error) { // path, text
			fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
			if err != nil {
				return "", err
			}
			defer unix.Close(fd)
			return "", unix.Sendto(fd, []byte(a[1]), 0, &unix.SockaddrUnix{Name: a[0]})
		},
		"sendfd": func(a []string) (string, error) { // through, descriptor
			return w.both(a, func(through, fd int) error {
				return unix.Sendmsg(through, []byte("x"), unix.UnixRights(fd), nil, 0)
			})
		},
		"recvfd": func(a []string) (string, error) { // name, through
			return w.with(a[1], func(through int) error { return w.receive(a[0], through) })
		},
		"await": w.await,
		"join":  w.join,
		"fanotify": func(a []string) (string, error) { // name, path, mask
			flags := uint(unix.FAN_CLASS_NOTIF | unix.FAN_REPORT_FID | unix.FAN_NONBLOCK | unix.FAN_CLOEXEC)
			fd, err := unix.FanotifyInit(flags, unix.O_RDONLY)
			if err != nil {
				return "", err
			}
			w.fds[a[0]] = fd
			return "", unix.FanotifyMark(fd, unix.FAN_MARK_ADD, uint64(number(a[2])), unix.AT_FDCWD, a[1])
		},
	}
}

// ready waits until something can be read. It ends after a while with nothing there.
func ready(fd int) error {
	for {
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, 5000)
		switch {
		case err == unix.EINTR:
		case err == nil && n == 0:
			return unix.ETIMEDOUT
		default:
			return err
		}
	}
}

// await waits until a watch has seen anything, and takes it: a program that watches reads the file again then.
func (w *worker) await(a []string) (string, error) {
	fd, err := w.fd(a[0])
	if err != nil {
		return "", err
	}
	if err := ready(fd); err != nil {
		return "", err
	}
	var b [65536]byte
	for deadline := time.Now().Add(time.Second); time.Now().Before(deadline); {
		if _, err := unix.Read(fd, b[:]); err == unix.EAGAIN {
			return "told", nil
		}
	}
	return "told, without an end", nil
}

func (w *worker) receive(name string, through int) error {
	b, oob := make([]byte, 1), make([]byte, unix.CmsgSpace(4))
	_, n, _, _, err := unix.Recvmsg(through, b, oob, unix.MSG_CMSG_CLOEXEC|unix.MSG_DONTWAIT)
	if err != nil {
		return err
	}
	msgs, err := unix.ParseSocketControlMessage(oob[:n])
	if err != nil || len(msgs) == 0 {
		return err
	}
	fds, err := unix.ParseUnixRights(&msgs[0])
	if err != nil {
		return err
	}
	w.fds[name] = fds[0]
	return nil
}

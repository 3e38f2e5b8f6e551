//go:build linux

package main

import (
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// openPty makes a terminal of one's own; -1 where there is none.
func openPty() (master, slave int) {
	m, err := unix.Open("/dev/ptmx", unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
	if err != nil {
		return -1, -1
	}
	if unix.IoctlSetPointerInt(m, unix.TIOCSPTLCK, 0) != nil {
		return m, -1
	}
	n, err := unix.IoctlGetInt(m, unix.TIOCGPTN)
	if err != nil {
		return m, -1
	}
	s, err := unix.Open("/dev/pts/"+itoa(n), unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
	if err != nil {
		return m, -1
	}
	return m, s
}

// tiocsti pushes input into terminals: an own one, the inherited fds, and fd -1, where only a filter answers before
// EBADF.
func tiocsti(_ []string) outcome {
	var t tally
	fds := map[string]int{"no fd": -1, "stdin": 0, "stdout": 1, "stderr": 2}
	if _, s := openPty(); s >= 0 {
		_, _ = unix.Setsid()
		_, _ = raw(unix.SYS_IOCTL, s, unix.TIOCSCTTY, 0)
		fds["own terminal"] = s
	}
	for text, fd := range fds {
		for _, high := range []uint64{0, 1 << 32, 0xffffffff << 32, 0xdead << 40} {
			_, err := raw(unix.SYS_IOCTL, fd, unix.TIOCSTI|high, "Z")
			call := text
			if high != 0 {
				call += " high bits"
			}
			t.err(call, err)
		}
	}
	return t.outcome()
}

// ttyIoctls asks on fd -1: a filter answers EPERM, the kernel EBADF, and nothing can happen.
func ttyIoctls(_ []string) outcome {
	var t tally
	for call, req := range map[string]uint64{"TIOCLINUX": unix.TIOCLINUX, "TIOCCONS": unix.TIOCCONS,
		"TIOCSETD": unix.TIOCSETD, "TIOCVHANGUP": unix.TIOCVHANGUP, "TIOCLINUX high": unix.TIOCLINUX | 1<<32} {
		arg := make([]byte, 64)
		arg[0] = 3
		_, err := raw(unix.SYS_IOCTL, -1, req, arg)
		t.err(call, err)
	}
	return t.outcome()
}

// ttys writes to a terminal of the host and looks for foreign ones. ttys PATH
func ttys(args []string) outcome {
	var t tally
	f, err := os.OpenFile(arg(args, 0), os.O_WRONLY|unix.O_NOCTTY|unix.O_NONBLOCK, 0)
	if err == nil {
		_, err = f.WriteString("CANARY-TTY")
		f.Close()
	}
	t.err("host terminal", err)
	entries, err := os.ReadDir("/dev/pts")
	if err != nil {
		return t.outcome()
	}
	for _, e := range entries {
		if n := e.Name(); n != "ptmx" && strings.Trim(n, "0123456789") == "" && len(n) > 1 {
			t.add("listed "+n, harmless)
		}
	}
	return t.outcome()
}

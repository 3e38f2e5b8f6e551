//go:build linux

package main

import (
	"bytes"
	"encoding/binary"
	"os"

	"golang.org/x/sys/unix"
)

func bpf(_ []string) outcome {
	var t tally
	for _, c := range []int{0, 5, 8, 12, 13, 15, 18, 28, 36} {
		// All zero attributes: no command can do anything with them.
		fd, err := raw(unix.SYS_BPF, c, make([]byte, 144), 144)
		t.err("command "+itoa(c), err)
		if err == nil && fd > 2 {
			unix.Close(int(fd))
		}
	}
	// More attributes than a page is refused first of all (E2BIG), whoever asks: it shows whether the call got through.
	_, err := raw(unix.SYS_BPF, 0, make([]byte, 1<<16), 1<<16)
	t.err("too large", err)
	return t.outcome()
}

// keyring looks for the caller's key and tries to add one. keyring NAME
func keyring(args []string) outcome {
	var t tally
	id, err := raw(unix.SYS_KEYCTL, unix.KEYCTL_SEARCH, unix.KEY_SPEC_SESSION_KEYRING, "user", arg(args, 0), 0)
	if err != nil {
		t.add("search", name(err))
	} else {
		b := make([]byte, 100)
		_, err := raw(unix.SYS_KEYCTL, unix.KEYCTL_READ, id, b, len(b))
		if err == nil && bytes.Contains(b, []byte("CANARY")) {
			t.win("read", "CANARY")
		} else {
			t.add("read", name(err))
		}
	}
	for _, ring := range []int{unix.KEY_SPEC_SESSION_KEYRING, unix.KEY_SPEC_USER_KEYRING,
		unix.KEY_SPEC_USER_SESSION_KEYRING} {
		_, err := raw(unix.SYS_KEYCTL, unix.KEYCTL_GET_KEYRING_ID, ring, 0)
		t.err("ring "+itoa(ring), err)
	}
	// The payload pointer is bad, so no key is made even where the call is allowed.
	_, err = raw(unix.SYS_ADD_KEY, "user", "sbx-probe", 1, 8, unix.KEY_SPEC_USER_KEYRING)
	t.err("add_key", err)
	return t.outcome()
}

func userFault(_ []string) outcome {
	var t tally
	for _, f := range []int{0, 1, unix.O_NONBLOCK | 1} {
		fd, err := raw(unix.SYS_USERFAULTFD, f|unix.O_CLOEXEC)
		t.err("flags "+itoa(f), err)
		if err == nil {
			unix.Close(int(fd))
		}
	}
	fd, err := unix.Open("/dev/userfaultfd", unix.O_RDWR|unix.O_CLOEXEC, 0)
	t.err("/dev/userfaultfd", err)
	if err == nil {
		unix.Close(fd)
	}
	return t.outcome()
}

func kernLog(_ []string) outcome {
	var t tally
	_, err := unix.Klogctl(unix.SYSLOG_ACTION_READ_ALL, make([]byte, 1024))
	t.err("syslog", err)
	fd, err := unix.Open("/dev/kmsg", unix.O_RDONLY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	t.err("/dev/kmsg", err)
	if err == nil {
		unix.Close(fd)
	}
	return t.outcome()
}

// pageCache tries to write to a file opened for reading, by splice and by mappings.
func pageCache(args []string) outcome {
	before, err := os.ReadFile(arg(args, 0))
	if err != nil {
		return skipped("pagecache", "cannot open the allowed file: "+err.Error())
	}
	fd, err := unix.Open(arg(args, 0), unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return stopped(err)
	}
	defer unix.Close(fd)
	var t tally
	pipe := make([]int, 2)
	if err := unix.Pipe2(pipe, unix.O_CLOEXEC|unix.O_NONBLOCK); err != nil {
		return skipped("pagecache", err.Error())
	}
	junk := bytes.Repeat([]byte{'A'}, 65536)
	n, _ := unix.Write(pipe[1], junk)
	_, _ = unix.Read(pipe[0], junk[:max(n, 0)])
	off := int64(0)
	_, err = unix.Splice(fd, &off, pipe[1], nil, 1, 0)
	t.add("splice", harmlessIf(err))
	_, _ = unix.Write(pipe[1], []byte("EVIL"))
	if after, err := os.ReadFile(arg(args, 0)); err == nil && !bytes.Equal(before, after) {
		t.win("content", "changed")
	}
	m, err := unix.Mmap(fd, 0, 4096, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	t.err("shared writable mapping", err)
	if err == nil {
		_ = unix.Munmap(m)
	}
	if m, err := unix.Mmap(fd, 0, 4096, unix.PROT_READ, unix.MAP_SHARED); err == nil {
		t.err("mprotect", unix.Mprotect(m, unix.PROT_READ|unix.PROT_WRITE))
	}
	return t.outcome()
}

func harmlessIf(err error) string {
	if err == nil {
		return harmless
	}
	return name(err)
}

// ioctls tries requests that change files, file systems, interfaces and consoles. ioctls FILE [host]
// With "host" only what is harmless there: one flag of a scratch file.
func ioctls(args []string) outcome {
	var t tally
	fd, err := unix.Open(arg(args, 0), unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return skipped("ioctls", "cannot open the allowed file: "+err.Error())
	}
	defer unix.Close(fd)
	flags := make([]byte, 8)
	if _, err := raw(unix.SYS_IOCTL, fd, unix.FS_IOC_GETFLAGS, flags); err == nil {
		const noDump = 0x40
		flags[0] ^= noDump
		_, err := raw(unix.SYS_IOCTL, fd, unix.FS_IOC_SETFLAGS, flags)
		t.err("FS_IOC_SETFLAGS", err)
	}
	if arg(args, 1) == "host" {
		return t.outcome()
	}
	try := func(call string, fd int, req uint64, size int) {
		_, err := raw(unix.SYS_IOCTL, fd, req, make([]byte, size))
		t.err(call, err)
	}
	s, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err == nil {
		defer unix.Close(s)
		try("SIOCBRADDBR", s, 0x89a0, 64)
		try("SIOCSIFADDR", s, unix.SIOCSIFADDR, 64)
	}
	try("KDSETMODE", 0, 0x4b3a, 8)
	// High bits of a request are cut off by the kernel; a filter that compares 64 bits is blind to it.
	if s >= 0 {
		try("SIOCBRADDBR high", s, 0x89a0|1<<40, 64)
	}
	if !holdsCap(unix.CAP_SYS_ADMIN) {
		try("FITRIM", fd, 0xc0185879, 24)
		try("FIFREEZE", fd, 0xc0045877, 8)
	} else {
		t.win("FIFREEZE", "CAP_SYS_ADMIN is held: not tried")
	}
	return t.outcome()
}

// clocks uses impossible times: EINVAL means that the call was reached, nothing can be set.
func clocks(_ []string) outcome {
	bad := make([]byte, 16)
	binary.NativeEndian.PutUint64(bad[8:], ^uint64(0))
	var t tally
	_, err := raw(unix.SYS_CLOCK_SETTIME, unix.CLOCK_REALTIME, bad)
	t.err("clock_settime", err)
	_, err = raw(unix.SYS_SETTIMEOFDAY, bad, 0)
	t.err("settimeofday", err)
	_, err = raw(unix.SYS_ACCT, 1)
	t.err("acct", err)
	return t.outcome()
}

func sched(_ []string) outcome {
	var t tally
	prio := make([]byte, 4)
	prio[0] = 50
	_, err := raw(unix.SYS_SCHED_SETSCHEDULER, 0, 1, prio)
	t.err("SCHED_FIFO", err)
	t.err("nice -20", unix.Setpriority(unix.PRIO_PROCESS, 0, -20))
	_, err = raw(unix.SYS_IOPRIO_SET, 1, 0, 1<<13)
	t.err("ioprio realtime", err)
	return t.outcome()
}

func personality(_ []string) outcome {
	const readImpliesExec, noRandomize = 0x0400000, 0x0040000
	var t tally
	_, err := raw(unix.SYS_PERSONALITY, readImpliesExec|noRandomize)
	t.err("READ_IMPLIES_EXEC", err)
	if now, err := raw(unix.SYS_PERSONALITY, 0xffffffff); err == nil && now&readImpliesExec != 0 {
		t.win("now", itoa(int(now)))
	}
	for _, c := range oldCalls() {
		if c.name == "modify_ldt" {
			_, err := raw(c.nr, 0, make([]byte, 64), 64)
			t.err(c.name, err)
		}
	}
	return t.outcome()
}

// ioURing: a ring is enough, its requests pass no filter.
func ioURing(_ []string) outcome {
	fd, err := raw(unix.SYS_IO_URING_SETUP, 4, make([]byte, 120))
	if err != nil {
		return stopped(err)
	}
	unix.Close(int(fd))
	return won("a ring was made; its opens pass no filter")
}

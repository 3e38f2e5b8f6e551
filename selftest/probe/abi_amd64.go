//go:build linux

package main

import (
	"os/exec"
	"syscall"

	"golang.org/x/sys/unix"
)

// int80 is a system call by the 32-bit door, with 32-bit numbers.
func int80(nr, a, b, c uint32) int32

// actInt80 opens by the 32-bit door: a filter that does not look at the architecture sees another call.
func actInt80(paths []string) outcome {
	m, err := low()
	if err != nil {
		return skipped("int80", err.Error())
	}
	var t tally
	for _, p := range paths {
		copy(m, append([]byte(p), 0))
		r := int80(5, uint32(address(m)), unix.O_RDONLY, 0)
		if r < 0 {
			t.add(p, name(syscall.Errno(-r)))
			continue
		}
		t.fd(p, int(r))
	}
	return t.outcome()
}

func low() ([]byte, error) {
	return unix.Mmap(-1, 0, 4096, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON|unix.MAP_32BIT)
}

// hasIA32 asks in another process: without the emulation the instruction is a fault.
func hasIA32() bool {
	out, err := exec.Command(self(), "-host", "int80", "/").Output()
	return err == nil && len(out) > 0
}

const x32Bit = 0x40000000

// x32 tries numbers of the x32 ABI, which a filter by number alone lets through.
func x32(paths []string) outcome {
	var t tally
	for _, p := range paths {
		r, err := raw(x32Bit|unix.SYS_OPEN, p, unix.O_RDONLY)
		t.err("open "+p, err)
		if err == nil {
			unix.Close(int(r))
		}
		r, err = raw(x32Bit|unix.SYS_OPENAT, unix.AT_FDCWD, p, unix.O_RDONLY)
		t.err("openat "+p, err)
		if err == nil {
			unix.Close(int(r))
		}
	}
	_, err := raw(x32Bit|514, -1, unix.TIOCSTI, "x")
	t.err("ioctl", err)
	return t.outcome()
}

func hasX32() bool {
	_, err := raw(x32Bit | unix.SYS_GETPID)
	return err == nil
}

//go:build linux

package main

import (
	"context"
	"os"
	"os/exec"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// program is what the ways of execOther try to run; it does nothing and needs its loader and libraries.
const program = "/usr/bin/true"

// execOther runs what was not named, in the ways that are asked for.
func execOther(ways []string) outcome {
	var t tally
	for _, w := range ways {
		t.err(w, execWay(w))
	}
	return t.outcome()
}

// runs reports whether a program ran; one that was started and could not load what it needs did not.
func runs(argv ...string) error {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	err := exec.CommandContext(ctx, argv[0], argv[1:]...).Run()
	if e, ok := err.(*exec.ExitError); ok {
		if e.ExitCode() == 127 || e.ExitCode() == 126 {
			return unix.EACCES
		}
		return unix.ENOEXEC
	}
	return err
}

func execWay(way string) error {
	self, err := os.ReadFile("/proc/self/exe") // a static program, which a copy of is good everywhere
	if err != nil {
		return err
	}
	const copied = "/tmp/probe-copy"
	write := func(path string, b []byte) error { return os.WriteFile(path, b, 0o755) }
	defer os.Remove(copied)
	switch way {
	case "program":
		return runs(program)
	case "shell":
		return runs("/bin/sh", "-c", ":")
	case "copy":
		if err := write(copied, self); err != nil {
			return err
		}
		return runs(copied, "list")
	case "project":
		if err := write("probe-copy", self); err != nil {
			return err
		}
		defer os.Remove("probe-copy")
		return runs("./probe-copy", "list")
	case "shm":
		if err := write("/dev/shm/probe-copy", self); err != nil {
			return err
		}
		defer os.Remove("/dev/shm/probe-copy")
		return runs("/dev/shm/probe-copy", "list")
	case "loader":
		return runs(loaderPath(), program)
	case "loadercopy":
		b, err := os.ReadFile(loaderPath())
		if err == nil {
			err = write(copied, b)
		}
		if err != nil {
			return err
		}
		return runs(copied, program)
	case "script":
		if err := write(copied, []byte("#!/bin/sh\nexit 0\n")); err != nil {
			return err
		}
		return runs(copied)
	case "scriptself": // the named program as the interpreter of what was not named
		if err := write(copied, []byte("#!"+program+" -x\n")); err != nil {
			return err
		}
		return runs(copied)
	case "fd":
		fd, err := unix.Open(program, unix.O_PATH|unix.O_CLOEXEC, 0)
		if err != nil {
			return err
		}
		defer unix.Close(fd)
		return runs("/proc/" + itoa(os.Getpid()) + "/fd/" + itoa(fd))
	case "memfd":
		return memfd(self, 0)
	case "memfdexec":
		return memfd(self, 0x10) // MFD_EXEC
	case "map":
		if err := write(copied, self); err != nil {
			return err
		}
		return mapFile(copied)
	case "protect":
		f, err := os.Open(program)
		if err != nil {
			return err
		}
		defer f.Close()
		b, err := unix.Mmap(int(f.Fd()), 0, 4096, unix.PROT_READ, unix.MAP_PRIVATE)
		if err != nil {
			return err
		}
		return unix.Mprotect(b, unix.PROT_READ|unix.PROT_EXEC)
	}
	return unix.EINVAL
}

func mapFile(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = unix.Mmap(int(f.Fd()), 0, 1, unix.PROT_READ|unix.PROT_EXEC, unix.MAP_PRIVATE)
	return err
}

func mapExec(paths []string) outcome {
	var t tally
	for _, p := range paths {
		t.err(p, mapFile(p))
	}
	return t.outcome()
}

// loaderPath is the dynamic loader, by the name that programs of this architecture have for it.
func loaderPath() string {
	for _, p := range [...]string{"/lib64/ld-linux-x86-64.so.2", "/lib/ld-linux-aarch64.so.1",
		"/lib/ld-musl-x86_64.so.1"} {
		if _, err := os.Stat(p); err == nil {
			return p
		}
	}
	return "/lib64/ld-linux-x86-64.so.2"
}

func memfd(b []byte, flags int) error {
	fd, err := unix.MemfdCreate("probe", unix.MFD_CLOEXEC|flags)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	for len(b) > 0 {
		n, err := unix.Write(fd, b)
		if err != nil {
			return err
		}
		b = b[n:]
	}
	return runs("/proc/"+strings.Join([]string{itoa(os.Getpid()), "fd", itoa(fd)}, "/"), "list")
}

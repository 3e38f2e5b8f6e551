//go:build linux

package main

import (
	"fmt"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// repeat makes one kind of call many times in the current directory: "rename:10000".
func repeat(what string) error {
	kind, times, _ := strings.Cut(what, ":")
	n, err := strconv.Atoi(times)
	if err != nil {
		return fmt.Errorf("%q is not KIND:NUMBER", what)
	}
	if err := os.WriteFile("called", make([]byte, 4096), 0o644); err != nil {
		return err
	}
	defer os.Remove("called")
	fd, err := unix.Open("called", unix.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	call := calls(fd)[kind]
	if call == nil {
		return fmt.Errorf("no call %q", kind)
	}
	for i := range n {
		if err := call(i); err != nil {
			return fmt.Errorf("%s: %w", kind, err)
		}
	}
	return nil
}

// calls are given how often they have been made. Each leaves what it finds, if it is made an even number of times.
func calls(fd int) map[string]func(int) error {
	open := func(flags int) error {
		fd, err := unix.Open("called", flags, 0o644)
		if err != nil {
			return err
		}
		return unix.Close(fd)
	}
	names := [2]string{"called", "called2"}
	return map[string]func(int) error{
		"open-read":  func(int) error { return open(unix.O_RDONLY) },
		"open-write": func(int) error { return open(unix.O_WRONLY) },
		"rename":     func(i int) error { return unix.Rename(names[i%2], names[1-i%2]) },
		"create": func(i int) error { // and remove
			if i%2 == 1 {
				return unix.Unlink("made")
			}
			fd, err := unix.Open("made", unix.O_CREAT|unix.O_EXCL|unix.O_WRONLY, 0o644)
			if err != nil {
				return err
			}
			return unix.Close(fd)
		},
		"stat": func(int) error { var st unix.Stat_t; return unix.Stat("called", &st) },
		"flock": func(i int) error {
			return unix.Flock(fd, [2]int{unix.LOCK_EX, unix.LOCK_UN}[i%2])
		},
		"record-lock": func(i int) error {
			l := unix.Flock_t{Type: [2]int16{unix.F_WRLCK, unix.F_UNLCK}[i%2], Len: 10}
			return unix.FcntlFlock(uintptr(fd), unix.F_SETLK, &l)
		},
		"mmap": func(int) error {
			m, err := unix.Mmap(fd, 0, 4096, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
			if err != nil {
				return err
			}
			m[0]++
			return unix.Munmap(m)
		},
	}
}

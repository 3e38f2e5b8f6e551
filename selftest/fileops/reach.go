//go:build linux

package main

import (
	"bytes"
	"fmt"
	"os"
	"runtime"
	"sync"
	"sync/atomic"

	"golang.org/x/sys/unix"
)

// swapping has the commands of two that work against each other: one has a directory and a link change places as fast
// as it can, the other goes through them.
func (w *worker) swapping() map[string]command {
	return map[string]command{
		"exchange": func(a []string) (string, error) { // how often, and in which directories
			return exchangeAll(int64(number(a[0])), a[1:])
		},
		"reach": func(a []string) (string, error) { // how often, and in which directories
			var r reached
			for i := range number(a[0]) {
				for _, dir := range a[1:] {
					if dir != "" {
						r.through(dir+"/turns/", i)
					}
				}
			}
			return fmt.Sprintf("%d %d %d", r.read, r.written, r.secrets), nil
		},
	}
}

// exchangeAll has "turns" and "away" of each directory change places n times in all, by a thread for each directory.
func exchangeAll(n int64, dirs []string) (string, error) {
	var count, failed atomic.Int64
	var done sync.WaitGroup
	for _, dir := range dirs {
		if dir == "" {
			continue
		}
		done.Go(func() {
			runtime.LockOSThread()
			fd, err := unix.Open(dir, unix.O_PATH|unix.O_DIRECTORY, 0)
			if err != nil {
				failed.Add(1)
				return
			}
			defer unix.Close(fd)
			for count.Load() < n {
				if unix.Renameat2(fd, "turns", fd, "away", unix.RENAME_EXCHANGE) != nil {
					failed.Add(1)
					return
				}
				count.Add(1)
			}
		})
	}
	done.Wait()
	if failed.Load() > 0 {
		return "", fmt.Errorf("%d threads have not swapped", failed.Load())
	}
	return fmt.Sprint(count.Load()), nil
}

// secret is what lies where the links lead.
const secret = "sk_live_4242"

// reached counts what was read and written, and what should not have been.
type reached struct{ read, written, secrets int }

// through reads and writes at every name that is there both in the directory and where the link leads.
func (r *reached) through(turns string, i int) {
	for _, name := range []string{"data", ".env", "hooks/data"} {
		if b, err := os.ReadFile(turns + name); err == nil {
			r.read++
			if bytes.Contains(b, []byte(secret)) {
				r.secrets++
			}
		}
	}
	name := turns + "hooks/pre-commit"
	at := unix.AT_FDCWD
	ways := []func() error{
		func() error { return writtenTo(name) },
		func() error { return unix.Chmod(name, 0o700) },
		func() error { return unix.Truncate(turns+"data", 5) },
		func() error { return unix.Unlink(name) },
		func() error { return unix.Mkdir(name, 0o755) },
		func() error { return unix.Rmdir(name) },
		func() error { return unix.Symlink("data", name) },
		func() error { return unix.Link(turns+"data", turns+"linked") },
		func() error { return unix.Renameat2(at, name, at, turns+"hooks/moved", 0) },
		func() error { return unix.Unlink(turns + "linked") },
		func() error { return unix.Mknod(name, unix.S_IFIFO|0o644, 0) },
		func() error { return unix.UtimesNanoAt(at, turns+"data", nil, 0) },
		func() error { return unix.Setxattr(turns+"data", "user.x", []byte("x"), 0) },
		func() error { return unix.Unlink(turns + "hooks/moved") },
	}
	for k := range 4 {
		if ways[(4*i+k)%len(ways)]() == nil {
			r.written++
		}
	}
}

// writtenTo makes a file. A pipe may have taken the name meanwhile, which nobody reads.
func writtenTo(name string) error {
	fd, err := unix.Open(name, unix.O_WRONLY|unix.O_CREAT|unix.O_NONBLOCK|unix.O_CLOEXEC, 0o755)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	_, err = unix.Write(fd, []byte("#!/bin/sh\n"))
	return err
}

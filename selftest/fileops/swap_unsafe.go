//go:build linux

package main

import (
	"fmt"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// swap calls what makes and writes names, at least n times each, while a thread changes the path in memory and two
// what its directories are: between a free place and a guarded one. It ends when the directories were swapped so often,
// or, unless that is 0, after so many seconds. It says how many calls have succeeded, and how often what was swapped.
func swap(n int, swaps int64, seconds int) string {
	page, err := unix.Mmap(-1, 0, 8192, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
	if err != nil {
		return err.Error()
	}
	var stop atomic.Bool
	var done sync.WaitGroup
	var bytes, directories atomic.Int64
	for _, again := range []func(){swapsBytes(page, &bytes), swapsDirectories(&directories), exchanges(&directories)} {
		done.Go(func() {
			runtime.LockOSThread()
			for !stop.Load() {
				again()
			}
		})
	}
	won, i, begun := [3]int{}, 0, time.Now()
	over := func() bool {
		return directories.Load() >= swaps || seconds > 0 && time.Since(begun) > time.Duration(seconds)*time.Second
	}
	for ; i < n || !over(); i++ {
		for k, path := range [][]byte{page, pathOf("turns/hooks/pre-commit"), pathOf("other/hooks/pre-commit")} {
			if attempt(path, i) {
				won[k]++
			}
		}
	}
	stop.Store(true)
	done.Wait()
	const said = "swapped bytes %d, swapped directories %d, exchanged directories %d, of %d calls each; " +
		"%d swaps of directories, %d of bytes"
	return fmt.Sprintf(said, won[0], won[1], won[2], i, directories.Load(), bytes.Load())
}

func pathOf(s string) []byte { return append([]byte(s), 0) }

// The two paths differ in their first bytes alone: one is free, the other a hook of the repository.
const freePath, hookPath = "free/hooks/pre-commit", ".git/hooks/pre-commit"

func swapsBytes(page []byte, count *atomic.Int64) func() {
	copy(page, freePath)
	at := (*uint32)(unsafe.Pointer(&page[0]))
	free, hook := pathOf(freePath), pathOf(hookPath)
	a, b := *(*uint32)(unsafe.Pointer(&free[0])), *(*uint32)(unsafe.Pointer(&hook[0]))
	return func() {
		atomic.StoreUint32(at, b)
		atomic.StoreUint32(at, a)
		count.Add(2)
	}
}

// swapsDirectories makes "turns" a directory with hooks in it, a link to the repository, and the directory again.
func swapsDirectories(count *atomic.Int64) func() {
	_ = os.MkdirAll("turns/hooks", 0o755)
	return func() {
		_ = unix.Rename("turns", "aside")
		if unix.Symlink(".git", "turns") == nil {
			count.Add(1)
		}
		_ = unix.Unlink("turns")
		if unix.Rename("aside", "turns") == nil {
			count.Add(1)
		}
	}
}

// exchanges has a directory and a link to the repository change places.
func exchanges(count *atomic.Int64) func() {
	_ = os.MkdirAll("other/hooks", 0o755)
	_ = os.Symlink(".git", "link")
	return func() {
		if unix.Renameat2(unix.AT_FDCWD, "other", unix.AT_FDCWD, "link", unix.RENAME_EXCHANGE) == nil {
			count.Add(1)
		}
	}
}

// attempt is one of the calls, on a path in memory.
func attempt(path []byte, i int) bool {
	p := uintptr(unsafe.Pointer(&path[0]))
	src := pathOf("source")
	s := uintptr(unsafe.Pointer(&src[0]))
	at := ^uintptr(99)
	raw := func(nr, a, b, c, d uintptr) bool {
		_, _, e := unix.Syscall6(nr, a, b, c, d, 0, 0)
		return e == 0
	}
	defer runtime.KeepAlive(src)
	switch i % 8 {
	case 0, 1:
		fd, _, e := unix.Syscall6(unix.SYS_OPENAT, at, p, unix.O_CREAT|unix.O_WRONLY, 0o755, 0, 0)
		if e == 0 {
			_, _ = unix.Write(int(fd), []byte("#!/bin/sh\n"))
			unix.Close(int(fd))
		}
		return e == 0
	case 2:
		return raw(unix.SYS_MKDIRAT, at, p, 0o755, 0)
	case 3:
		return raw(unix.SYS_UNLINKAT, at, p, unix.AT_REMOVEDIR, 0)
	case 4:
		return raw(unix.SYS_SYMLINKAT, s, at, p, 0)
	case 5:
		_ = os.WriteFile("source", []byte("#!/bin/sh\n"), 0o755)
		return raw(unix.SYS_LINKAT, at, s, at, p)
	case 6:
		return raw(unix.SYS_RENAMEAT2, at, s, at, p)
	}
	return raw(unix.SYS_UNLINKAT, at, p, 0, 0)
}

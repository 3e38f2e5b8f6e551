package main

import (
	"fmt"
	"os"
	"runtime"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"
)

// swap calls what makes and writes names, n times each, while one thread changes the path in memory and another what its directories
// are: between a free place and a guarded one. It says how many calls have succeeded.
func swap(n int) string {
	var stop atomic.Bool
	var threads [2]chan struct{}
	page, err := unix.Mmap(-1, 0, 8192, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
	if err != nil {
		return err.Error()
	}
	for i, again := range []func(){swapsBytes(page), swapsDirectories()} {
		threads[i] = make(chan struct{})
		go func() {
			runtime.LockOSThread()
			defer close(threads[i])
			for !stop.Load() {
				again()
			}
		}()
	}
	won := [2]int{}
	for i := range n {
		if attempt(page, i) {
			won[0]++
		}
		if attempt(pathOf("turns/hooks/pre-commit"), i) {
			won[1]++
		}
	}
	stop.Store(true)
	<-threads[0]
	<-threads[1]
	return fmt.Sprintf("swapped bytes %d, swapped directories %d", won[0], won[1])
}

func pathOf(s string) []byte { return append([]byte(s), 0) }

// The two paths differ in their first bytes alone: one is free, the other a hook of the repository.
const freePath, hookPath = "free/hooks/pre-commit", ".git/hooks/pre-commit"

func swapsBytes(page []byte) func() {
	copy(page, freePath)
	at := (*uint32)(unsafe.Pointer(&page[0]))
	free, hook := pathOf(freePath), pathOf(hookPath)
	a, b := *(*uint32)(unsafe.Pointer(&free[0])), *(*uint32)(unsafe.Pointer(&hook[0]))
	return func() {
		atomic.StoreUint32(at, b)
		atomic.StoreUint32(at, a)
	}
}

// swapsDirectories makes "turns" a directory with hooks in it, a link to the repository, and the directory again.
func swapsDirectories() func() {
	_ = os.MkdirAll("turns/hooks", 0o755)
	return func() {
		_ = unix.Rename("turns", "aside")
		_ = unix.Symlink(".git", "turns")
		_ = unix.Unlink("turns")
		_ = unix.Rename("aside", "turns")
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

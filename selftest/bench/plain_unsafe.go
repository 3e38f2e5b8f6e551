//go:build linux

package main

import (
	"io"
	"syscall"
	"time"
	"unsafe"
)

// open takes the time of one system call, past this program's own runtime: its watchdog thread would wake for it.
func open(p string) (time.Duration, error) {
	name, err := syscall.BytePtrFromString(p)
	if err != nil {
		return 0, err
	}
	begin := time.Now()
	fd, _, no := syscall.RawSyscall6(syscall.SYS_OPENAT, atCwd, uintptr(unsafe.Pointer(name)), syscall.O_RDONLY|
		syscall.O_CLOEXEC, 0, 0, 0)
	d := time.Since(begin)
	if no != 0 {
		return d, no
	}
	return d, syscall.Close(int(fd))
}

const atCwd = ^uintptr(99) // AT_FDCWD

// plain reads and writes a descriptor past the runtime.
type plain int

func (p plain) Read(b []byte) (int, error)  { return p.call(syscall.SYS_READ, b) }
func (p plain) Write(b []byte) (int, error) { return p.call(syscall.SYS_WRITE, b) }

func (p plain) call(nr uintptr, b []byte) (int, error) {
	for {
		n, _, no := syscall.RawSyscall(nr, uintptr(p), uintptr(unsafe.Pointer(&b[0])), uintptr(len(b)))
		switch {
		case no == syscall.EINTR:
		case no != 0:
			return 0, no
		case n == 0:
			return 0, io.EOF
		default:
			return int(n), nil
		}
	}
}

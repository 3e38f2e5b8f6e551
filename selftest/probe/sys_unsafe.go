//go:build linux

package main

import (
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// raw makes one system call with exactly these arguments. Strings get a NUL, byte slices are passed by address.
// Pinning moves every buffer to the heap: an address on a growing stack would go stale between two arguments.
func raw(nr uintptr, args ...any) (uintptr, error) {
	var a [6]uintptr
	var pin runtime.Pinner
	defer pin.Unpin()
	for i, v := range args {
		switch x := v.(type) {
		case int:
			a[i] = uintptr(x)
		case uint64:
			a[i] = uintptr(x)
		case uintptr:
			a[i] = x
		case string:
			b := append([]byte(x), 0)
			pin.Pin(unsafe.SliceData(b))
			a[i] = address(b)
		case []byte:
			pin.Pin(unsafe.SliceData(x))
			a[i] = address(x)
		default:
			panic("BUG(probe): raw argument of an unknown type")
		}
	}
	r, _, e := unix.Syscall6(nr, a[0], a[1], a[2], a[3], a[4], a[5])
	if e != 0 {
		return r, e
	}
	return r, nil
}

// address is only good for memory that cannot move: pinned or mapped.
func address(b []byte) uintptr { return uintptr(unsafe.Pointer(unsafe.SliceData(b))) }

// fork makes a plain copy of this process. The child only ever makes raw calls: the Go runtime is not usable there.
// With nap it sleeps until killed (and dies with its parent), else it exits; with twice it forks once more first.
//
//go:nosplit
//go:norace
func fork(nap, twice bool) (int, unix.Errno) {
	pid, _, e := unix.RawSyscall6(unix.SYS_CLONE, uintptr(unix.SIGCHLD), 0, 0, 0, 0, 0)
	if e != 0 || pid != 0 {
		return int(pid), e
	}
	if twice {
		unix.RawSyscall6(unix.SYS_CLONE, uintptr(unix.SIGCHLD), 0, 0, 0, 0, 0)
	}
	if nap {
		unix.RawSyscall6(unix.SYS_PRCTL, unix.PR_SET_PDEATHSIG, uintptr(unix.SIGKILL), 0, 0, 0, 0)
		for {
			unix.RawSyscall6(unix.SYS_PPOLL, 0, 0, 0, 0, 0, 0)
		}
	}
	for {
		unix.RawSyscall6(unix.SYS_EXIT_GROUP, 0, 0, 0, 0, 0, 0)
	}
}

// sockFilter loads a one-instruction seccomp program.
func sockFilter(flags int, answer uint32) error {
	prog := []unix.SockFilter{{Code: unix.BPF_RET | unix.BPF_K, K: answer}}
	f := &unix.SockFprog{Len: 1, Filter: &prog[0]}
	_, _, e := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, uintptr(flags), uintptr(unsafe.Pointer(f)))
	runtime.KeepAlive(prog)
	if e != 0 {
		return e
	}
	return nil
}

// iovec is one buffer for process_vm_readv, written as the kernel wants it.
func iovec(base uintptr, n int) []byte {
	v := [2]uintptr{base, uintptr(n)}
	return append([]byte(nil), unsafe.Slice((*byte)(unsafe.Pointer(&v[0])), unsafe.Sizeof(v))...)
}

// swapPath copies two equally long paths into a live buffer, one after the other, as a racing thread does.
func swapPath(buf uintptr, a, b []byte) {
	p := unsafe.Slice((*byte)(unsafe.Add(unsafe.Pointer(nil), buf)), len(a))
	copy(p, a)
	spin()
	copy(p, b)
	spin()
}

//go:build linux

package host

import (
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// listenerTaken says whether a filter that this process is under reports to somebody, as that of another sandbox does:
// the kernel has one such filter above each process (EBUSY), so a sandbox in a sandbox must do without. It is found out
// on a thread of its own, which gets a filter that lets everything pass and ends.
func listenerTaken() bool {
	if mode, err := unix.PrctlRetInt(unix.PR_GET_SECCOMP, 0, 0, 0, 0); err != nil || mode != 2 {
		return false
	}
	taken := make(chan bool)
	go func() {
		runtime.LockOSThread() // and never unlocked
		_ = unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
		pass := unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: 0x7fff0000} // SECCOMP_RET_ALLOW
		prog := unix.SockFprog{Len: 1, Filter: &pass}
		fd, _, e := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, unix.SECCOMP_FILTER_FLAG_NEW_LISTENER,
			uintptr(unsafe.Pointer(&prog)))
		if e == 0 {
			unix.Close(int(fd))
		}
		taken <- e == unix.EBUSY
	}()
	return <-taken
}

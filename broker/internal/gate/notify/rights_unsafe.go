//go:build linux

package notify

import (
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// rights knows whether this process may do more on the host than the sandbox's user may. What is done on a caller's
// behalf is done without that surplus, so that root's broker opens nothing that its powerless guest could not.
type rights struct{ surplus bool }

func hasCapabilities() bool {
	var data [2]unix.CapUserData
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	return unix.Capget(&header, &data[0]) != nil || data[0].Effective|data[1].Effective != 0
}

// without runs f on a thread that has no effective capabilities.
func (r rights) without(f func()) {
	if !r.surplus {
		f()
		return
	}
	runtime.LockOSThread()
	var saved, none [2]unix.CapUserData
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	if capset(unix.SYS_CAPGET, &header, &saved) != 0 {
		panic("BUG(sbx): this thread's capabilities cannot be read")
	}
	none = saved
	none[0].Effective, none[1].Effective = 0, 0
	if capset(unix.SYS_CAPSET, &header, &none) != 0 {
		panic("BUG(sbx): this thread's capabilities cannot be laid down")
	}
	f()
	if capset(unix.SYS_CAPSET, &header, &saved) == 0 {
		runtime.UnlockOSThread() // otherwise the thread ends with its goroutine
	}
}

func capset(nr uintptr, h *unix.CapUserHeader, d *[2]unix.CapUserData) uintptr {
	_, _, e := unix.RawSyscall(nr, uintptr(unsafe.Pointer(h)), uintptr(unsafe.Pointer(d)), 0)
	return uintptr(e)
}

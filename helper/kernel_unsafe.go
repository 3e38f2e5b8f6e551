//go:build linux

package main

import (
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// peerGroups returns the supplementary groups of whoever made the socket (SO_PEERGROUPS, 4.13).
func peerGroups(sock int) ([]int, error) {
	var list [1024]uint32
	size := uint32(unsafe.Sizeof(list))
	_, _, errno := unix.Syscall6(unix.SYS_GETSOCKOPT, uintptr(sock), unix.SOL_SOCKET, unix.SO_PEERGROUPS,
		uintptr(unsafe.Pointer(&list)), uintptr(unsafe.Pointer(&size)), 0)
	if errno != 0 {
		return nil, errno
	}
	groups := make([]int, size/4)
	for i := range groups {
		groups[i] = int(list[i])
	}
	return groups, nil
}

// capset leaves this thread, or with all every thread of this process, these capabilities and no other (capset(2)).
func capset(effective, permitted uint64, all bool) error {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	data := [2]unix.CapUserData{{Effective: uint32(effective), Permitted: uint32(permitted)}, {Effective: uint32(effective >> 32), Permitted: uint32(permitted >> 32)}}
	set := syscall.RawSyscall
	if all {
		set = syscall.AllThreadsSyscall
	}
	_, _, errno := set(unix.SYS_CAPSET, uintptr(unsafe.Pointer(&header)), uintptr(unsafe.Pointer(&data)), 0)
	if errno != 0 {
		return errno
	}
	return nil
}

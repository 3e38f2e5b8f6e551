//go:build linux

package main

import (
	"fmt"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"

	"sbx.example/sbx/seccompbpf"
)

// refused are the calls that serving does not take and that lead elsewhere: to programs, to other processes, to keys,
// to other namespaces, to parts of the kernel that have had holes.
func refused() []string {
	return []string{"execve", "execveat", "ptrace", "process_vm_readv", "process_vm_writev", "pidfd_open", "pidfd_getfd",
		"kcmp", "keyctl", "add_key", "request_key", "unshare", "setns", "mount", "umount2", "open_tree", "move_mount",
		"fsopen", "fsmount", "pivot_root", "chroot", "bpf", "perf_event_open", "userfaultfd", "io_uring_setup",
		"io_uring_enter", "init_module", "finit_module", "kexec_load", "mknodat", "setuid", "setgid", "capset"}
}

// filter has the kernel refuse them to every thread.
func filter() error {
	arch, ok := map[string]seccompbpf.Arch{"amd64": seccompbpf.AMD64, "arm64": seccompbpf.ARM64}[runtime.GOARCH]
	if !ok {
		return nil
	}
	prog, err := seccompbpf.Compile(seccompbpf.Policy{Arch: arch, Default: seccompbpf.Allow,
		Rules: []seccompbpf.Rule{{Names: refused(), Action: seccompbpf.Errno(seccompbpf.EPERM)}}})
	if err != nil {
		return err
	}
	f := unix.SockFprog{Len: uint16(len(prog)), Filter: (*unix.SockFilter)(unsafe.Pointer(&prog[0]))}
	_, _, e := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, unix.SECCOMP_FILTER_FLAG_TSYNC,
		uintptr(unsafe.Pointer(&f)))
	runtime.KeepAlive(prog)
	if e != 0 {
		return fmt.Errorf("loading the system-call filter: %w", e)
	}
	return nil
}

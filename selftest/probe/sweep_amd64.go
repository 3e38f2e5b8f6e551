//go:build linux

package main

import "golang.org/x/sys/unix"

func oldCalls() []call {
	return []call{
		{"iopl", unix.SYS_IOPL, nil}, {"ioperm", unix.SYS_IOPERM, nil}, {"modify_ldt", unix.SYS_MODIFY_LDT, nil},
		{"uselib", unix.SYS_USELIB, nil},
		{"_sysctl", unix.SYS__SYSCTL, nil}, {"ustat", unix.SYS_USTAT, nil}, {"sysfs", unix.SYS_SYSFS, nil}, {"create_module",
			unix.SYS_CREATE_MODULE, nil},
		{"get_kernel_syms", unix.SYS_GET_KERNEL_SYMS, nil}, {"query_module", unix.SYS_QUERY_MODULE, nil},
		{"getpmsg", unix.SYS_GETPMSG, nil},
		{"afs_syscall", unix.SYS_AFS_SYSCALL, nil}, {"tuxcall", unix.SYS_TUXCALL, nil}, {"security", unix.SYS_SECURITY, nil},
		{"epoll_ctl_old", unix.SYS_EPOLL_CTL_OLD, nil}, {"vserver", unix.SYS_VSERVER, nil},
	}
}

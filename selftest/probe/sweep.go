//go:build linux

package main

import (
	"golang.org/x/sys/unix"
)

// call is one system call of the sweep with arguments that cannot take effect.
type call struct {
	name string
	nr   uintptr
	args []any
}

// sweep tries every call that must not exist for the guest: ENOSYS or EPERM must come before any look at the arguments.
func sweep(_ []string) outcome { return sweepOf(nil) }

// sweepOf tries the named calls, all if none is named. The default argument list is -1, 0, 0, …
func sweepOf(only []string) outcome {
	var t tally
	for _, c := range calls() {
		if len(only) > 0 && !contains(only, c.name) {
			continue
		}
		if c.name == "vhangup" && holdsCap(unix.CAP_SYS_TTY_CONFIG) {
			// It has no argument that could make it harmless.
			continue
		}
		args := c.args
		if args == nil {
			args = []any{-1, 0, 0, 0, 0, 0}
		}
		_, err := raw(c.nr, args...)
		t.err(c.name, err)
	}
	return t.outcome()
}

func contains(list []string, s string) bool {
	for _, x := range list {
		if x == s {
			return true
		}
	}
	return false
}

// calls are those that both architectures have; oldCalls adds what only one has.
func calls() []call {
	list := []call{
		{"bpf", unix.SYS_BPF, nil}, {"perf_event_open", unix.SYS_PERF_EVENT_OPEN, nil}, {"userfaultfd", unix.SYS_USERFAULTFD,
			nil},
		{"keyctl", unix.SYS_KEYCTL, nil}, {"add_key", unix.SYS_ADD_KEY, nil}, {"request_key", unix.SYS_REQUEST_KEY, nil},
		// Zero segments would unload a prepared kernel: ask for more than the kernel can take.
		{"kexec_load", unix.SYS_KEXEC_LOAD, []any{-1, 1 << 30, 0, 0}}, {"kexec_file_load", unix.SYS_KEXEC_FILE_LOAD,
			[]any{-1, -1, 0, 0, 1 << 20}},
		{"init_module", unix.SYS_INIT_MODULE, nil}, {"finit_module", unix.SYS_FINIT_MODULE, nil}, {"delete_module",
			unix.SYS_DELETE_MODULE, nil},
		{"mount", unix.SYS_MOUNT, nil}, {"umount2", unix.SYS_UMOUNT2, nil}, {"pivot_root", unix.SYS_PIVOT_ROOT, nil},
		{"fsopen", unix.SYS_FSOPEN, nil}, {"fsconfig", unix.SYS_FSCONFIG, nil}, {"fsmount", unix.SYS_FSMOUNT, nil},
		{"fspick", unix.SYS_FSPICK, nil},
		{"move_mount", unix.SYS_MOVE_MOUNT, nil}, {"open_tree", unix.SYS_OPEN_TREE, nil}, {"mount_setattr",
			unix.SYS_MOUNT_SETATTR, nil},
		{"open_tree_attr", unix.SYS_OPEN_TREE_ATTR, nil}, {"quotactl", unix.SYS_QUOTACTL, nil}, {"quotactl_fd",
			unix.SYS_QUOTACTL_FD, nil},
		{"swapon", unix.SYS_SWAPON, nil}, {"swapoff", unix.SYS_SWAPOFF, nil}, {"acct", unix.SYS_ACCT, nil},
		{"reboot", unix.SYS_REBOOT, nil},
		// Length 0 would empty the name: a negative length is refused.
		{"sethostname", unix.SYS_SETHOSTNAME, []any{-1, -1}}, {"setdomainname", unix.SYS_SETDOMAINNAME, []any{-1, -1}},
		{"io_uring_setup", unix.SYS_IO_URING_SETUP, nil}, {"io_uring_enter", unix.SYS_IO_URING_ENTER, nil},
		{"io_uring_register", unix.SYS_IO_URING_REGISTER, nil},
		{"syslog", unix.SYS_SYSLOG, nil}, {"settimeofday", unix.SYS_SETTIMEOFDAY, nil}, {"clock_settime",
			unix.SYS_CLOCK_SETTIME, nil},
		{"adjtimex", unix.SYS_ADJTIMEX, nil}, {"clock_adjtime", unix.SYS_CLOCK_ADJTIME, nil}, {"fanotify_init",
			unix.SYS_FANOTIFY_INIT, nil},
		{"name_to_handle_at", unix.SYS_NAME_TO_HANDLE_AT, nil}, {"open_by_handle_at", unix.SYS_OPEN_BY_HANDLE_AT, nil},
		{"setns", unix.SYS_SETNS, nil},
		{"process_vm_readv", unix.SYS_PROCESS_VM_READV, nil}, {"process_vm_writev", unix.SYS_PROCESS_VM_WRITEV, nil},
		{"kcmp", unix.SYS_KCMP, nil},
		{"lookup_dcookie", unix.SYS_LOOKUP_DCOOKIE, nil}, {"nfsservctl", unix.SYS_NFSSERVCTL, nil},
		{"vhangup", unix.SYS_VHANGUP, nil},
		{"migrate_pages", unix.SYS_MIGRATE_PAGES, nil}, {"move_pages", unix.SYS_MOVE_PAGES, nil}, {"pidfd_getfd",
			unix.SYS_PIDFD_GETFD, nil},
		{"process_madvise", unix.SYS_PROCESS_MADVISE, nil}, {"process_mrelease", unix.SYS_PROCESS_MRELEASE, nil},
		{"memfd_secret", unix.SYS_MEMFD_SECRET, nil},
		{"statmount", unix.SYS_STATMOUNT, nil}, {"listmount", unix.SYS_LISTMOUNT, nil}, {"map_shadow_stack",
			unix.SYS_MAP_SHADOW_STACK, nil},
		{"lsm_set_self_attr", unix.SYS_LSM_SET_SELF_ATTR, nil},
	}
	return append(list, oldCalls()...)
}

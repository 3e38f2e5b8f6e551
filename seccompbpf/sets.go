package seccompbpf

// group is a named list of system calls with the reason why it is treated as a group.
type group struct {
	Name  string
	Why   string
	Names []string
}

// set returns the names of a group.
func set(name string) (names []string, why string) {
	for i := range sets {
		if sets[i].Name == name {
			return sets[i].Names, sets[i].Why
		}
	}
	panic("BUG(sbx): no set of system calls is called " + name)
}

// allowedSets pass without a look at their arguments; what is in none of them and in no other rule is ENOSYS.
var allowedSets = [...]string{"@base", "@file", "@process", "@memory", "@signal", "@time", "@net", "@ipc", "@ids",
	"@self-confine", "@compat32"}

// sets are all groups. A call may be in one allowed or refused set only; the path sets used by the gate overlap with
// @file on purpose.
var sets = [...]group{
	{"@base", "every program needs these; without arguments, so that the kernel's allow cache answers", []string{
		"read", "write", "readv", "writev", "pread64", "pwrite64", "preadv", "pwritev", "preadv2", "pwritev2", "close",
		"close_range",
		"lseek", "_llseek", "dup", "dup2", "dup3", "pipe", "pipe2", "fcntl", "fcntl64", "flock", "poll", "ppoll",
		"ppoll_time64",
		"select", "_newselect", "pselect6", "pselect6_time64", "epoll_create", "epoll_create1", "epoll_ctl", "epoll_wait",
		"epoll_pwait",
		"epoll_pwait2", "eventfd", "eventfd2", "signalfd", "signalfd4", "timerfd_create", "timerfd_gettime",
		"timerfd_gettime64",
		"timerfd_settime", "timerfd_settime64", "inotify_init", "inotify_init1", "inotify_rm_watch", "sendfile",
		"sendfile64", "splice", "tee",
		"vmsplice", "copy_file_range", "getrandom", "uname", "sysinfo", "getcpu", "futex", "futex_time64", "futex_wait",
		"futex_wake",
		"futex_waitv", "futex_requeue", "set_robust_list", "get_robust_list", "membarrier", "rseq", "rseq_slice_yield",
		"arch_prctl",
		"set_thread_area", "get_thread_area", "set_tid_address", "io_setup", "io_submit", "io_cancel", "io_destroy",
		"io_getevents",
		"io_pgetevents", "io_pgetevents_time64",
	}},
	{"@file", "files are decided by the mount view, not by call names", []string{
		"open", "openat", "creat", "stat", "lstat", "fstat", "newfstatat", "stat64", "lstat64", "fstat64", "fstatat64",
		"statx", "access",
		"faccessat", "faccessat2", "readlink", "readlinkat", "getcwd", "chdir", "fchdir", "getdents", "getdents64",
		"truncate", "truncate64",
		"ftruncate", "ftruncate64", "rename", "renameat", "renameat2", "link", "linkat", "unlink", "unlinkat", "symlink",
		"symlinkat",
		"mkdir", "mkdirat", "rmdir", "mknod", "mknodat", "chmod", "fchmod", "fchmodat", "fchmodat2", "chown", "fchown",
		"lchown", "fchownat",
		"chown32", "fchown32", "lchown32", "utime", "utimes", "futimesat", "utimensat", "utimensat_time64", "umask",
		"statfs", "fstatfs",
		"statfs64", "fstatfs64", "fsync", "fdatasync", "sync", "syncfs", "sync_file_range", "arm_sync_file_range",
		"fallocate",
		"fadvise64", "fadvise64_64", "arm_fadvise64_64", "readahead", "cachestat", "getxattr", "lgetxattr", "fgetxattr",
		"setxattr", "lsetxattr",
		"fsetxattr", "listxattr", "llistxattr", "flistxattr", "removexattr", "lremovexattr", "fremovexattr",
		"inotify_add_watch", "ioctl",
	}},
	{"@process", "starting, waiting for and scheduling processes; the kernel checks rights and rlimits", []string{
		"clone", "fork", "vfork", "execve", "execveat", "exit", "exit_group", "wait4", "waitid", "waitpid", "getpid",
		"getppid", "gettid",
		"getpgid", "getpgrp", "setpgid", "getsid", "setsid", "kill", "tkill", "tgkill", "pidfd_open", "pidfd_send_signal",
		"prctl",
		"personality", "getpriority", "setpriority", "nice", "ioprio_get", "ioprio_set", "getrlimit", "ugetrlimit",
		"setrlimit", "prlimit64",
		"getrusage", "times", "sched_yield", "sched_getaffinity", "sched_setaffinity", "sched_getattr", "sched_setattr",
		"sched_getparam", "sched_setparam", "sched_getscheduler", "sched_setscheduler", "sched_get_priority_max",
		"sched_get_priority_min", "sched_rr_get_interval", "sched_rr_get_interval_time64", "restart_syscall", "uretprobe",
		"uprobe",
		"unshare",
	}},
	{"@memory", "own address space; NUMA libraries call the policy ones", []string{
		"brk", "mmap", "mmap2", "munmap", "mremap", "mprotect", "madvise", "mincore", "msync", "mlock", "mlock2", "mlockall",
		"munlock",
		"munlockall", "mseal", "memfd_create", "remap_file_pages", "pkey_alloc", "pkey_free", "pkey_mprotect",
		"get_mempolicy",
		"set_mempolicy", "set_mempolicy_home_node", "mbind", "arm_cacheflush",
	}},
	{"@signal", "signals; the pid namespace bounds whom they reach", []string{
		"rt_sigaction", "rt_sigprocmask", "rt_sigreturn", "rt_sigpending", "rt_sigqueueinfo", "rt_tgsigqueueinfo",
		"rt_sigsuspend",
		"rt_sigtimedwait", "rt_sigtimedwait_time64", "sigaltstack", "pause", "signal", "sigaction", "sigpending",
		"sigprocmask",
		"sigreturn", "sigsuspend", "sgetmask", "ssetmask", "arm_breakpoint",
	}},
	{"@time", "reading clocks, sleeping, own timers", []string{
		"clock_gettime", "clock_gettime64", "clock_getres", "clock_getres_time64", "clock_nanosleep",
		"clock_nanosleep_time64", "nanosleep",
		"gettimeofday", "time", "alarm", "getitimer", "setitimer", "timer_create", "timer_delete", "timer_getoverrun",
		"timer_gettime",
		"timer_gettime64", "timer_settime", "timer_settime64",
	}},
	{"@net", "sockets; where they lead is decided by the network namespace", []string{
		"socket", "socketpair", "bind", "listen", "accept", "accept4", "connect", "getsockname", "getpeername", "getsockopt",
		"setsockopt",
		"shutdown", "send", "sendto", "sendmsg", "sendmmsg", "recv", "recvfrom", "recvmsg", "recvmmsg", "recvmmsg_time64",
	}},
	{"@ipc", "System V and POSIX queues, shared memory, semaphores (postgres); bounded by the ipc namespace", []string{
		"shmget", "shmat", "shmctl", "shmdt", "semget", "semop", "semctl", "semtimedop", "semtimedop_time64", "msgget",
		"msgsnd", "msgrcv",
		"msgctl", "mq_open", "mq_unlink", "mq_timedsend", "mq_timedsend_time64", "mq_timedreceive", "mq_timedreceive_time64",
		"mq_notify",
		"mq_getsetattr",
	}},
	{"@ids", "reading ids and setting those that the user namespace maps; without capabilities the kernel " +
		"refuses the rest", []string{
		"getuid", "getuid32", "geteuid", "geteuid32", "getgid", "getgid32", "getegid", "getegid32", "getresuid",
		"getresuid32", "getresgid",
		"getresgid32", "getgroups", "getgroups32", "setuid", "setuid32", "setgid", "setgid32", "setreuid", "setreuid32",
		"setregid",
		"setregid32", "setresuid", "setresuid32", "setresgid", "setresgid32", "setgroups", "setgroups32", "setfsuid",
		"setfsuid32",
		"setfsgid", "setfsgid32", "capget", "capset",
	}},
	{"@self-confine", "calls by which a program gives up rights of its own; refusing them would weaken it", []string{
		"seccomp", "landlock_create_ruleset", "landlock_add_rule", "landlock_restrict_self",
	}},
	{"@compat32", "calls that only 32-bit programs have", []string{"ipc", "arm_set_tls"}},

	{"@debug", "tracing of processes inside; with tracing off nothing inside can take over a neighbour",
		[]string{"ptrace"}},
	{"@containers", "what sandboxes and containers inside need in their own namespaces; the kernel still asks for " +
		"capabilities there", []string{
		"setns", "chroot", "pivot_root", "mount", "umount", "umount2", "fsopen", "fsconfig", "fsmount", "fspick",
		"move_mount", "open_tree",
		"open_tree_attr", "mount_setattr", "sethostname", "setdomainname",
	}},
	{"@mount", "changing the mount view, old and new interface; open_tree is also an O_PATH open that no path gate sees",
		[]string{
			"mount", "umount", "umount2", "pivot_root", "chroot", "fsopen", "fsconfig", "fsmount", "fspick", "move_mount",
			"open_tree",
			"open_tree_attr", "mount_setattr",
		}},
	{"@kernel", "changing the running kernel: images, modules, programs, accounting, swap, raw ports", []string{
		"kexec_load", "kexec_file_load", "init_module", "finit_module", "delete_module", "create_module", "bpf", "reboot",
		"swapon",
		"swapoff", "acct", "iopl", "ioperm", "quotactl", "quotactl_fd", "nfsservctl", "vhangup", "syslog",
	}},
	{"@handles", "file handles reach every file of a file system, whatever is mounted", []string{"name_to_handle_at",
		"open_by_handle_at"}},
	{"@keyring", "the caller's session and user keyrings hold host keys, and their quota is shared with the host",
		[]string{
			"add_key", "request_key", "keyctl",
		}},
	{"@observe", "sees or changes other processes, or the machine below them", []string{
		"perf_event_open", "process_vm_readv", "process_vm_writev", "process_madvise", "process_mrelease", "kcmp",
		"pidfd_getfd",
		"fanotify_init", "fanotify_mark", "userfaultfd", "migrate_pages", "move_pages",
	}},
	{"@clock-set", "setting clocks; refused even for reading because one call does both", []string{
		"settimeofday", "stime", "clock_settime", "clock_settime64", "adjtimex", "clock_adjtime", "clock_adjtime64",
	}},
	{"@namespace", "names and namespaces of the session", []string{"setns", "sethostname", "setdomainname"}},
	{"@x86-legacy", "segment tables and real mode, a large and little tested part of the kernel", []string{"modify_ldt",
		"vm86", "vm86old"}},

	{"@io_uring", "does its opens and connects without passing this filter; programs have a fallback on ENOSYS", []string{
		"io_uring_setup", "io_uring_enter", "io_uring_register",
	}},
	{"@late", "newer than what programs rely on; ENOSYS sends them to the call that is filtered", []string{
		"statmount", "listmount", "listns", "lsm_get_self_attr", "lsm_set_self_attr", "lsm_list_modules", "map_shadow_stack",
		"memfd_secret", "file_getattr", "file_setattr", "getxattrat", "setxattrat", "listxattrat", "removexattrat",
	}},
	{"@obsolete", "gone or never there; kept off so that a kernel that still has them shows nothing", []string{
		"_sysctl", "afs_syscall", "bdflush", "break", "epoll_ctl_old", "epoll_wait_old", "ftime", "get_kernel_syms",
		"getpmsg", "gtty", "idle",
		"lock", "lookup_dcookie", "mpx", "oldfstat", "oldlstat", "oldolduname", "oldstat", "olduname", "pciconfig_iobase",
		"pciconfig_read",
		"pciconfig_write", "prof", "profil", "putpmsg", "query_module", "readdir", "security", "stty", "sysfs", "tuxcall",
		"ulimit",
		"uselib", "ustat", "vserver",
	}},

	{"@notify", "calls that name a path or an address: the gate's second engine answers each", []string{
		"open", "openat", "openat2", "creat", "stat", "lstat", "newfstatat", "stat64", "lstat64", "fstatat64", "statx",
		"access", "faccessat",
		"faccessat2", "readlink", "readlinkat", "execve", "execveat", "chdir", "truncate", "truncate64", "rename",
		"renameat", "renameat2",
		"link", "linkat", "unlink", "unlinkat", "mkdir", "mkdirat", "rmdir", "symlink", "symlinkat", "mknod", "mknodat",
		"chmod", "fchmodat",
		"fchmodat2", "chown", "lchown", "fchownat", "chown32", "lchown32", "utime", "utimes", "futimesat", "utimensat",
		"utimensat_time64", "setxattr", "lsetxattr", "getxattr", "lgetxattr", "listxattr", "llistxattr", "removexattr",
		"lremovexattr", "inotify_add_watch", "statfs", "statfs64", "connect", "bind",
	}},
	{"@writes", "calls that make or change a name or what it says of a file, and umask, which says how new ones begin",
		[]string{
			"creat", "truncate", "truncate64", "rename", "renameat", "renameat2", "link", "linkat", "unlink", "unlinkat",
			"mkdir", "mkdirat",
			"rmdir", "symlink", "symlinkat", "mknod", "mknodat", "chmod", "fchmod", "fchmodat", "fchmodat2", "chown", "fchown",
			"lchown",
			"fchownat", "chown32", "fchown32", "lchown32", "utime", "utimes", "futimesat", "utimensat", "utimensat_time64",
			"setxattr",
			"lsetxattr", "fsetxattr", "removexattr", "lremovexattr", "fremovexattr", "bind", "umask",
		}},
	{"@notify-denied", "an attempt is worth a line in the audit log: the broker answers EPERM and records it", []string{
		"kexec_load", "kexec_file_load", "init_module", "finit_module", "delete_module", "bpf", "mount", "umount", "umount2",
		"pivot_root", "fsopen", "fsconfig", "fsmount", "fspick", "move_mount", "open_tree", "open_tree_attr", "mount_setattr",
		"open_by_handle_at", "ptrace", "setns", "perf_event_open", "userfaultfd", "keyctl", "add_key", "request_key",
		"process_vm_readv",
		"process_vm_writev", "reboot", "swapon", "swapoff", "iopl", "ioperm",
	}},
	{"@cached", "must reach allow without an argument, so that the kernel's allow cache (5.11) holds them", []string{
		"read", "write", "close", "newfstatat", "fstat", "stat", "lstat", "statx", "mmap", "munmap", "mprotect", "brk",
		"futex", "getppid",
		"getpid", "lseek", "pread64", "pwrite64", "poll", "ppoll", "epoll_wait", "epoll_pwait", "readlink",
		"readlinkat", "access",
		"faccessat", "faccessat2", "getdents64", "rt_sigaction", "rt_sigprocmask", "sendmsg", "recvmsg", "sendto", "recvfrom",
	}},
}

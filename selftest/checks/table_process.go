//go:build linux

package checks

// privileges: NS-01 to NS-05 and NS-11 to NS-14, what the program is and may become.
func privileges() []Check {
	return []Check{
		{ID: "NS-01", Group: Privileges, Title: "credential state of every thread",
			Tries: "read the five capability sets, NoNewPrivs, Seccomp", Must: "0, 1, 2",
			Layer: "init", Act: "status", Want: []string{"NONE"}, Control: onHost()},
		{ID: "NS-02", Group: Privileges, Title: "new user namespace", Tries: "unshare and clone", Must: "refused",
			Layer: "seccomp", Act: "userns", Want: []string{"EPERM", "ENOSPC", "ENOSYS"}, Control: Control{Host: true,
				Needs: []string{"userns"}}},
		{ID: "NS-03", Group: Seccomp, Title: "clone3 hides its flags in memory", Tries: "clone3 with a wrong size",
			Must:  "ENOSYS, so that libc falls back to clone",
			Layer: "seccomp", Act: "clone3", Want: []string{"ENOSYS"}, Control: Control{Off: []string{"seccomp"}, Host: true,
				Reach: 1, Needs: []string{"clone3"}}},
		{ID: "NS-04", Group: Privileges, Title: "other namespaces", Tries: "unshare with seven flags", Must: "refused",
			Layer: "capabilities", Act: "nsflags", Want: []string{"EPERM", "ENOSYS"}, Control: Control{Host: true, NS: "user",
				Needs: []string{"userns"}}},
		{ID: "NS-05", Group: Privileges, Title: "setns to every reachable namespace", Tries: "own, init's, parents, owners",
			Must:  "refused before any check",
			Layer: "seccomp", Act: "setns", Args: []string{"1", "self"}, Want: plus(hidden(), "ENOSYS"),
			Control: Control{Host: true, NS: "user", Args: []string{"self"}, Needs: []string{"userns"}}},
		{ID: "NS-11", Group: Privileges, Title: "set-user-id programs", Tries: "read no_new_privs", Must: "set",
			Layer: "nnp", Act: "suid", Args: []string{"/usr", "/bin"}, Want: []string{"NONE"},
			Control: Control{Off: []string{"nnp"}, Host: true}},
		{ID: "NS-12", Group: Privileges, Title: "uid, gid and capability changes",
			Tries: "capset, setuid, setresuid, setgroups, setfsuid", Must: "refused",
			Layer: "capabilities", Act: "ids", Want: []string{"EPERM", "EINVAL", "ENOSYS"}, Control: Control{Host: true,
				NS: "user", Needs: []string{"userns"}}},
		{ID: "NS-13", Group: Privileges, Title: "identity maps written again",
			Tries: "uid_map, gid_map, setgroups, projid_map", Must: "refused",
			Layer: "proc", Act: "idmaps", Args: []string{"0 0 1"}, Want: plus(hidden(), "EROFS"), Control: Control{Host: true,
				NS: "unmapped", Args: []string{"0 {UID} 1"}, Needs: []string{"userns"}}},
		{ID: "NS-14", Group: Seccomp, Title: "odd process attributes", Tries: "personality READ_IMPLIES_EXEC, modify_ldt",
			Must:  "refused",
			Layer: "seccomp", Act: "personality", Want: filter(), Control: Control{Off: []string{"seccomp"}, Host: true}},
	}
}

// processes: NS-06 to NS-09, NS-15, NS-16, LC-02, RS-10 and debugging.
func processes() []Check {
	nested := []string{"{SBX}", "run", "-q", "--static", "--ro", "{OTHER}", "--", "/bin/cat", "{OTHER}"}
	return []Check{
		{ID: "NS-06", Group: Debug, Title: "tracing init", Tries: "PTRACE_SEIZE and PTRACE_ATTACH on pid 1", Must: "EPERM",
			Layer: "init", Act: "ptraceother", Args: []string{"1"}, Want: []string{"EPERM", "ENOSYS"},
			Control: Control{Host: true, Args: []string{"{HPID}"}}},
		{ID: "NS-07", Group: Process, Title: "signals to init and to the host",
			Tries: "KILL and STOP to pid 1, signal 0 to a host process", Must: "init lives, host process is not there",
			Layer: "pidns", Act: "signals", Args: []string{"{HPID}", "init"}, Want: []string{"ESRCH", "EPERM", "HARMLESS"},
			Control: Control{Host: true, Args: []string{"{HPID}"}}},
		{ID: "NS-08", Group: Debug, Title: "writing into init", Tries: "/proc/1/mem, process_vm_writev", Must: "refused",
			Layer: "init", Act: "procmem", Args: []string{"1", "w"}, Want: plus(hidden(), "EROFS", "ENOSYS"),
			Control: Control{Host: true, Args: []string{"{HPID}", "w"}}},
		{ID: "NS-09", Group: Process, Title: "kcmp, pidfd_open and prlimit on a host process", Tries: "all three",
			Must:  "no such process, or refused",
			Layer: "pidns", Act: "foreign", Args: []string{"{HPID}"}, Want: []string{"ESRCH", "EPERM", "ENOSYS"},
			Control: Control{Off: []string{"pidns"}, Host: true, Reach: 1}},
		{ID: "NS-15", Group: Lifecycle, Title: "daemons that outlive the session",
			Tries: "own session, deaf to signals, stopped", Must: "gone one second after the end",
			Layer: "pidns", Act: "daemon", Args: []string{"{TAG}-daemon"}, After: verify("noprocess", "{TAG}-daemon"),
			Alone: true, Want: []string{noEffect}, Control: onHost()},
		{ID: "NS-16", Group: Lifecycle, Title: "sbx inside sbx", Tries: "run sbx with a read grant for a hidden file",
			Must:  "refused, or no more rights than outside",
			Layer: "mount view", Act: "execout", Args: nested, Want: plus(hidden(), "NONE", "ENOSYS"),
			Control: Control{Host: true}},
		{ID: "LC-02", Group: Lifecycle, Title: "kill -9 of the broker", Tries: "SIGKILL to sbx while daemons run",
			Must:  "every process of the session is gone within two seconds",
			Layer: "pidns", Act: "linger", Args: []string{"{TAG}-linger", "{READY}"}, After: verify("noprocess",
				"{TAG}-linger"), Alone: true, Kill: true, Want: []string{noEffect}, Control: onHost()},
		{ID: "RS-10", Group: Lifecycle, Title: "zombies", Tries: "200 orphans", Must: "init reaps them",
			Layer: "init", Act: "zombies", Want: []string{"NONE"}, Control: Control{Host: true, Args: []string{"subreaper"}}},
		{ID: "DB-01", Group: Debug, Title: "--no-debug", Tries: "trace an own child",
			Must:  "refused with --no-debug, works without",
			Layer: "seccomp", Act: "ptracechild", Options: []string{"--no-debug"}, Want: filter(),
			Control: Control{Options: []string{}}},
	}
}

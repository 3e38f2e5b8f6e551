//go:build linux

package checks

// writing: FW-01 to FW-09 and FW-16 to FW-20, changes outside the project.
func writing() []Check {
	mine := under("{HOME}", "x", ".bashrc", ".profile", ".zshrc", ".config/fish/config.fish", ".gitconfig",
		".ssh/authorized_keys", ".ssh/rc", ".config/systemd/user/x.service",
		".config/autostart/x.desktop", ".local/bin/git", ".local/share/applications/x.desktop", ".npmrc",
		".claude/settings.json", ".config/sbx/policy.toml")
	system := []string{"/etc/{TAG}", "/usr/{TAG}", "/var/tmp/{TAG}.x", "/root/{TAG}"}
	same := append(verify("same", "{RO}", "{HOME}/.bashrc"), verify("absent", append(append([]string{}, system...),
		mine[0], mine[2], mine[3], mine[4], mine[5], mine[6], mine[7], mine[8], mine[9], mine[10], mine[11], mine[13])...)...)
	scratch := []string{"{LAB}/scratch"}
	return []Check{
		{ID: "FW-01", Group: Filesystem, Title: "plain writes to the host",
			Tries: "append to start-up files, configuration, system directories",
			Must:  "refused, or lands where it is discarded; host unchanged",
			Layer: "mount view", Act: "append", Args: append(append([]string{"{RO}"}, mine...), system...), After: same,
			Want: plus(blocked(), "ENOTDIR"), Control: Control{Host: true, Args: []string{"{RO}", "{HOME}/.bashrc"}}},
		{ID: "FW-02", Group: Filesystem, Title: "write through a project symlink",
			Tries: "append through links to .bashrc and a read-only file", Must: "host unchanged",
			Layer: "mount view", Act: "linkwrite", Args: []string{"{HOME}/.bashrc", "{RO}"}, After: verify("same", "{RO}",
				"{HOME}/.bashrc"), Want: blocked(), Control: onHost()},
		{ID: "FW-03", Group: Filesystem, Title: "hard link of a host file into the project", Tries: "link, linkat by fd",
			Must:  "another mount or refused",
			Layer: "mount view", Act: "hardlink", Args: []string{"{RO}", "{SECRET}", "{OTHER}", "/etc/hostname", "/etc/passwd"},
			Want: blocked(), Control: Control{Host: true, Args: []string{"{RO}", "{SECRET}"}}},
		{ID: "FW-04", Group: Privileges, Title: "mounting and remounting",
			Tries: "mount, umount2, mount_setattr, fspick, pivot_root, move_mount", Must: "all refused",
			Layer: "seccomp, capabilities", Act: "mounts", Args: []string{"{PROJ}", "{HOME}"}, Want: filter(),
			Control: Control{Host: true, NS: "user", Needs: []string{"userns"}}},
		{ID: "FW-05", Group: Filesystem, Title: "/proc/sys and other knobs", Tries: "open for writing", Must: "refused",
			Layer: "proc", Act: "openwrite",
			Args: []string{"/proc/sys/kernel/core_pattern", "/proc/sys/kernel/modprobe", "/proc/sys/kernel/hotplug",
				"/proc/sys/kernel/randomize_va_space", "/proc/sys/fs/binfmt_misc/register", "/proc/sys/vm/overcommit_memory",
				"/proc/sys/kernel/ns_last_pid", "/proc/sysrq-trigger", "/proc/irq/default_smp_affinity", "/proc/mtrr",
				"/proc/scsi/scsi", "/proc/acpi/wakeup", "/proc/latency_stats", "/proc/1/oom_score_adj", "/proc/1/uid_map"},
			Want: plus(hidden(), "EROFS", "EIO"), Control: Control{Host: true, Args: []string{"/proc/{HPID}/oom_score_adj"}}},
		{ID: "FW-06", Group: Filesystem, Title: "cgroup files and release_agent",
			Tries: "open for writing below /sys/fs/cgroup", Must: "refused or absent",
			Layer: "mount view", Act: "cgroupfs", Args: []string{"/sys/fs/cgroup"}, Setup: files("{LAB}/cg/a", "x",
				"release_agent", "cgroup.procs"),
			Want: plus(hidden(), "EROFS", "NONE"), Control: Control{Host: true, Args: []string{"{LAB}/cg"}}},
		{ID: "FW-07", Group: Privileges, Title: "cgroup hierarchy in new user and cgroup namespaces (CVE-2022-0492)",
			Tries: "clone, then mount cgroup and cgroup2", Must: "refused at clone or mount",
			Layer: "seccomp", Act: "cgroupmount", Want: plus(filter(), "ENOSPC", "EINVAL", "EBUSY"),
			Control: Control{Host: true, Needs: []string{"userns"}}},
		{ID: "FW-08", Group: Privileges, Title: "setuid and setgid bits in the project",
			Tries: "chmod, fchmod, fchmodat2, open, openat2, mknod with the bit", Must: "refused, or the bit is absent",
			Layer: "seccomp", Act: "suidbits", Args: []string{"{PROJ}/probe-su"}, Want: []string{"EPERM", "ENOSYS", "NONE"},
			Control: Control{Off: []string{"seccomp"}, Host: true}},
		{ID: "FW-09", Group: Privileges, Title: "file capabilities and trusted attributes",
			Tries: "setxattr security.capability, trusted.*", Must: "refused",
			Layer: "capabilities", Act: "secxattr", Args: []string{"{PROJ}/probe-fc"}, Want: []string{"EPERM", "ENOTSUP",
				"EOPNOTSUPP", "EACCES"}, Control: Control{Host: true, NS: "user", Needs: []string{"userns"}}},
		{ID: "FW-16", Group: Filesystem, Title: "changes without an open",
			Tries: "truncate, chmod, utimes, rename, link, unlink and more", Must: "refused; host unchanged",
			Layer: "mount view", Act: "modify", Args: []string{"{RO}", "{OTHER}"}, After: append(verify("same", "{RO}",
				"{OTHER}"), verify("absent", "{RO}.x", "{RO}.l", "{RO}.d", "{OTHER}.x", "{OTHER}.l", "{OTHER}.d")...),
			Want: plus(blocked(), "ENOSYS"), Control: Control{Host: true}},
		{ID: "FW-17", Group: Filesystem, Title: "device nodes in the project",
			Tries: "mknod of a disk, /dev/mem and a terminal", Must: "EPERM",
			Layer: "capabilities", Act: "mknods", Args: []string{"{PROJ}/probe-dev"}, Want: []string{"EPERM"},
			Control: Control{None: "needs CAP_MKNOD of the host, which no harmless control has"}},
		{ID: "FW-18", Group: Filesystem, Title: "private /tmp, /dev/shm and shared memory",
			Tries: "look for files that the host has there", Must: "not there",
			Layer: "mount view", Act: "exists", Args: []string{"/tmp/{TAG}", "/dev/shm/{TAG}"}, Setup: []Setup{{Kind: "file",
				Path: "/tmp/{TAG}", Text: "x"}, {Kind: "file", Path: "/dev/shm/{TAG}", Text: "x"}}, Want: hidden(),
			Control: onHost()},
		{ID: "FW-18-shm", Group: Process, Title: "System V shared memory of the host", Tries: "shmget with the host's key",
			Must:  "not there",
			Layer: "ipcns", Act: "sysvshm", Args: []string{"{SHMKEY}"}, Setup: []Setup{{Kind: "shm"}}, Want: plus(hidden(),
				"ENOSYS"), Control: Control{Off: []string{"ipcns"}, Host: true}},
		{ID: "FW-19", Group: Filesystem, Title: "exclusive lock on a read-only host file", Tries: "flock LOCK_EX",
			Must: "refused, or documented", Layer: "mount view", Act: "flock", Args: []string{"{RO}"},
			Setup: scratchFile(scratch[0]), Want: plus(hidden(), "EROFS", "OK"),
			Control: Control{None: "success is acceptable: nothing to switch off"}},
		{ID: "FW-20", Group: Secrets, Title: "the broker's own files", Tries: "state, audit log, policy, sockets",
			Must: "not in the view", Layer: "mount view", Act: "findsbx",
			Args: []string{"{HOME}/.config/sbx/canary.txt", "{HOME}/.local/state/sbx/canary.txt", "{RUN}/sbx", "/run/sbx",
				"--", "{HOME}", "{RUN}", "/run", "/tmp"},
			Setup: append(files("{HOME}/.config/sbx", "CANARY\n", "canary.txt"), files("{HOME}/.local/state/sbx", "CANARY\n",
				"canary.txt")...), Want: hidden(), Control: onHost()},
	}
}

func scratchFile(path string) []Setup { return []Setup{{Kind: "file", Path: path, Text: "scratch\n"}} }

// planting: FW-10 to FW-13 and NT-23, code that the host would run later.
func planting() []Check {
	git := under("{PROJ}/.git", "hooks/pre-commit", "hooks/post-checkout", "config.worktree", "info/attributes",
		"modules/x/config", "objects/info/alternates")
	covered := git[:2] // in a directory that is there
	fresh := under("{PROJ}", ".mcp.json", ".claude/settings.json", ".claude/settings.local.json", ".vscode/tasks.json",
		".vscode/launch.json", ".idea/workspace.xml", ".envrc", ".husky/pre-commit", ".sbx/policy.toml", ".sbx/config.toml")
	plain := under("{PROJ2}", ".git/hooks/post-checkout", ".git/config")
	return []Check{
		{ID: "FW-10", Group: Filesystem, Title: "git hooks and configuration",
			Tries: "append to hooks, config, attributes, alternates", Must: "refused; host unchanged",
			Layer: "mount view", Needs: guard(), Act: "append", Args: append([]string{"{PROJ}/.git/config"}, git...),
			After: append(verify("same", "{PROJ}/.git/config"), verify("absent", git...)...), Want: plus(blocked(), "ENOTDIR"),
			Control: onHost()},
		{ID: "FW-10-cover", Group: Filesystem, Title: "git hooks and configuration that exist",
			Tries: "append to config and hooks", Must: "refused; host unchanged", Layer: "mount view",
			Act: "append", Args: append([]string{"{PROJ}/.git/config"}, covered...), After: append(verify("same",
				"{PROJ}/.git/config"), verify("absent", covered...)...), Want: plus(blocked(), "ENOTDIR"), Control: onHost()},
		{ID: "FW-11", Group: Filesystem, Title: "move .git away", Tries: "rename .git and .git/hooks", Must: "refused",
			Layer: "mount view", Act: "moveaway", Args: []string{".git", ".git/hooks"}, Want: []string{"EBUSY", "EACCES",
				"EROFS", "EPERM", "EXDEV"}, Control: onHost()},
		{ID: "FW-12", Group: Filesystem, Title: "rename an ancestor of a protected file",
			Tries: "rename and exchange .vscode", Must: "refused, host unchanged", Layer: "mount view", Act: "ancestor",
			Args: []string{".vscode/settings.json"},
			Want: []string{"EBUSY", "EACCES", "EROFS", "EPERM", "EXDEV"}, Control: onHost()},
		{ID: "FW-13", Group: Filesystem, Title: "protected names that did not exist at start",
			Tries: "create settings, hooks, tasks", Must: "refused, or not on the host afterwards",
			Layer: "mount view", Needs: guard(), Act: "plant", Args: fresh, After: verify("absent", fresh...), Want: blocked(),
			Control: onHost()},
		{ID: "FW-13-git", Group: Filesystem, Title: ".git in a project that is no repository",
			Tries: "create .git/hooks and .git/config", Must: "refused, or not on the host afterwards",
			Layer: "mount view", Needs: guard(), Act: "plant", Args: plain, Setup: []Setup{{Kind: "file",
				Path: "{PROJ2}/README", Text: "hi\n"}}, Dir: "{PROJ2}", After: verify("absent", plain...), Want: blocked(),
			Control: onHost()},
		{ID: "NT-23", Group: Filesystem, Title: "socket in .git where git looks for its monitor",
			Tries: "bind .git/fsmonitor--daemon.ipc", Must: "refused",
			Layer: "mount view", Needs: guard(), Act: "bindsock", Args: []string{".git/fsmonitor--daemon.ipc"},
			Want: []string{"EROFS", "EACCES", "EPERM"}, Control: onHost()},
	}
}

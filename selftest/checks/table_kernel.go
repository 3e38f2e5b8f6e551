//go:build linux

package checks

// kernel: the KI group.
func kernel() []Check {
	return []Check{
		{ID: "KI-01", Group: Seccomp, Title: "calls that must not exist for the guest",
			Tries: "some 75 calls with arguments that cannot take effect",
			Must:  "ENOSYS or EPERM for each, before any look at the arguments",
			Layer: "seccomp", Act: "sweep", Want: filter(), Control: Control{Off: []string{"seccomp"}, Host: true, Drop: true,
				Reach: 15}},
		{ID: "KI-02", Group: Seccomp, Title: "bpf in every command",
			Tries: "nine commands, and attributes that are too large", Must: "refused",
			Layer: "seccomp", Act: "bpf", Want: filter(), Control: Control{Off: []string{"seccomp"}, Host: true, Drop: true,
				Reach: 1}},
		{ID: "KI-03", Group: Secrets, Title: "the caller's session keyring",
			Tries: "search and read a key, reach keyrings, add a key", Must: "refused",
			Layer: "seccomp", Act: "keyring", Args: []string{"{TAG}"}, Want: filter(),
			Control: Control{Off: []string{"seccomp"}, Host: true, Reach: 1, Needs: []string{"keyring"}}},
		{ID: "KI-04", Group: Seccomp, Title: "userfaultfd", Tries: "the call and the device", Must: "refused, device absent",
			Layer: "seccomp", Act: "userfault", Want: plus(filter(), "ENOENT", "EACCES"),
			Control: Control{Off: []string{"seccomp"}, Host: true, Needs: []string{"userfaultfd"}}},
		{ID: "KI-05", Group: Seccomp, Title: "new mount interface", Tries: "fsopen of seven file systems", Must: "refused",
			Layer: "seccomp, capabilities", Act: "newmounts",
			Args: []string{"tmpfs", "overlay", "proc", "fuse", "ext4", "erofs", "cgroup2"}, Want: filter(),
			Control: Control{Host: true, NS: "user", Args: []string{"tmpfs"}, Needs: []string{"userns"}}},
		{ID: "KI-06", Group: Seccomp, Title: "kernel log", Tries: "syslog(2), /dev/kmsg", Must: "refused, device absent",
			Layer: "seccomp", Act: "kernlog", Want: plus(hidden(), "ENOSYS"), Control: Control{Host: true,
				Needs: []string{"dmesg"}}},
		{ID: "KI-07", Group: Filesystem, Title: "writing to the page cache of a read-only file",
			Tries: "splice and pipe, shared mappings, mprotect", Must: "content unchanged, mappings refused",
			Layer: "kernel", Act: "pagecache", Args: []string{"{RO}"}, Want: plus(hidden(), "HARMLESS", "ENODEV", "ENOSYS"),
			Control: Control{None: "probe for a regression of the kernel (Dirty Pipe): no layer of sbx is involved"}},
		{ID: "KI-08", Group: Seccomp, Title: "ioctl requests",
			Tries: "file flags, trim, freeze, bridge, address, console mode", Must: "refused or harmless",
			Layer: "mount view, capabilities", Act: "ioctls", Args: []string{"{RO}"}, Want: []string{"EPERM", "EACCES", "EROFS",
				"ENOTTY", "EINVAL", "ENODEV", "ENOTSUP", "EOPNOTSUPP", "EBADF", "ENOSYS", "NONE"},
			Setup:   scratchFile("{LAB}/ioctl"),
			Control: Control{Host: true, Args: []string{"{LAB}/ioctl", "host"}}},
		{ID: "KI-09", Group: Seccomp, Title: "clocks and accounting",
			Tries: "clock_settime, settimeofday, acct with impossible values", Must: "refused before the value is looked at",
			Layer: "seccomp", Act: "clocks", Want: filter(), Control: Control{Off: []string{"seccomp"}, Host: true, Drop: true,
				Reach: 1}},
		{ID: "KI-10", Group: Privileges, Title: "scheduler abuse", Tries: "SCHED_FIFO, nice -20, real-time I/O",
			Must:  "refused",
			Layer: "capabilities", Act: "sched", Want: []string{"EPERM", "EACCES", "ENOSYS"}, Control: Control{Host: true,
				Needs: []string{"root"}}},
	}
}

// terminal: TT-01 to TT-04; prompts are tested elsewhere.
func terminal() []Check {
	off := Control{Off: []string{"seccomp"}, Host: true, Reach: 1}
	return []Check{
		{ID: "TT-01", Group: Terminal, Title: "TIOCSTI into a terminal", Tries: "an own terminal, inherited fds, no fd",
			Must: "EPERM for each", Layer: "seccomp", Act: "tiocsti", Want: []string{"EPERM"}, Control: off},
		{ID: "TT-02", Group: Terminal, Title: "TIOCSTI with high request bits",
			Tries: "three patterns (flatpak CVE-2019-10063)", Must: "EPERM for each", Layer: "seccomp", Act: "tiocsti",
			Want: []string{"EPERM"}, Control: off},
		{ID: "TT-03", Group: Terminal, Title: "TIOCLINUX, TIOCCONS, TIOCSETD, TIOCVHANGUP",
			Tries: "on no fd: only a filter answers before EBADF", Must: "EPERM", Layer: "seccomp", Act: "ttyioctls",
			Want: []string{"EPERM"}, Control: off},
		{ID: "TT-04", Group: Terminal, Title: "terminals of the host", Tries: "write to the runner's terminal by path",
			Must:  "nothing arrives",
			Layer: "pty", Act: "ttys", Args: []string{"{HTTY}"}, After: verify("quiet", "{HTTY}"), Want: plus(hidden(), "ENXIO",
				"EIO", "HARMLESS", noEffect), Control: onHost()},
	}
}

// network: NT-01 to NT-10, NT-20, NT-21, NT-24 and BP-01. Packets only ever go to documentation addresses in a
// namespace with nothing but lo.
func network() []Check {
	docs := []string{"192.0.2.1", "2001:db8::1"}
	v4 := docs[:1]
	lab := Control{Host: true, NS: "net", Args: v4, Needs: []string{"userns"}}
	none := []string{"ENETUNREACH", "EPERM", "EACCES", "EAFNOSUPPORT", "EHOSTUNREACH", "EADDRNOTAVAIL", "EPROTONOSUPPORT"}
	daemons := []string{"/run/docker.sock", "/var/run/docker.sock", "/run/podman/podman.sock",
		"/run/user/*/podman/podman.sock", "/run/containerd/containerd.sock", "/run/crio/crio.sock",
		"/run/libvirt/libvirt-sock",
		"/var/lib/lxd/unix.socket", "/run/snapd.socket", "/run/buildkit/buildkitd.sock", "/nix/var/nix/daemon-socket/socket",
		"/run/nscd/socket", "/run/systemd/private", "/run/systemd/journal/stdout", "/run/udev/control",
		"/run/dbus/system_bus_socket", "/run/pcscd/pcscd.comm", "/run/cups/cups.sock", "/run/tailscale/tailscaled.sock"}
	own := []string{"{HOME}/.docker/run/docker.sock", "{HOME}/.colima/default/docker.sock", "{RUN}/bus",
		"{RUN}/podman.sock", "{RUN}/private"}
	desk := []string{"{RUN}/wayland-0", "{RUN}/pipewire-0", "{RUN}/native", "{RUN}/agent.sock", "{RUN}/S.gpg-agent"}
	sockets := func(paths []string) []Setup {
		var s []Setup
		for _, p := range paths {
			s = append(s, Setup{Kind: "socket", Path: p})
		}
		return s
	}
	env := Control{Off: []string{"env"}, Host: true}
	return []Check{
		{ID: "NT-01", Group: Network, Title: "no egress", Tries: "TCP to documentation addresses", Must: "no route",
			Layer: "netns", Act: "egress", Args: docs, Want: none, Control: lab},
		{ID: "NT-02", Group: Network, Title: "UDP, ICMP, raw and packet sockets", Tries: "send to documentation addresses",
			Must: "no route or refused", Layer: "netns, capabilities", Act: "rawsock", Args: v4, Want: none, Control: lab},
		{ID: "NT-03", Group: Network, Title: "abstract sockets of the host", Tries: "connect to the runner's",
			Must:  "ECONNREFUSED",
			Layer: "netns", Act: "abstract", Args: []string{"{TAG}"}, Setup: []Setup{{Kind: "abstract", Path: "{TAG}"}},
			Want: []string{"ECONNREFUSED", "EPERM", "EACCES"}, Control: Control{Off: []string{"netns"}, Host: true}},
		{ID: "NT-04", Group: Network, Title: "unix socket below a read-only directory", Tries: "connect by path",
			Must:  "refused although the directory is granted",
			Layer: "gate", Act: "connect", Args: []string{"{HSOCK}"}, Want: gone(), Control: onHost()},
		{ID: "NT-05", Group: Network, Title: "sockets of container and system daemons", Tries: "connect to each",
			Must:  "absent or refused",
			Layer: "mount view", Act: "connect", Args: append(append([]string{}, own...), daemons...), Setup: sockets(own),
			Want: gone(), Control: Control{Host: true, Args: own}},
		{ID: "NT-06", Group: Network, Title: "D-Bus and service manager by environment", Tries: "look for the variables",
			Must: "unset", Layer: "env", Act: "env",
			Args: []string{"DBUS_SESSION_BUS_ADDRESS", "DBUS_SYSTEM_BUS_ADDRESS", "NOTIFY_SOCKET", "LISTEN_FDS",
				"JOURNAL_STREAM", "INVOCATION_ID"}, Want: []string{"NONE"}, Control: env},
		{ID: "NT-07", Group: Network, Title: "display and sound by environment", Tries: "look for the variables",
			Must: "unset", Layer: "env", Act: "env",
			Args: []string{"DISPLAY", "WAYLAND_DISPLAY", "XAUTHORITY", "PULSE_SERVER", "PIPEWIRE_REMOTE"},
			Want: []string{"NONE"}, Control: env},
		{ID: "NT-07-sock", Group: Network, Title: "display, sound and agent sockets", Tries: "connect to each",
			Must: "absent or refused", Layer: "mount view", Act: "connect",
			Args: append([]string{"/tmp/.X11-unix/X*"}, desk...), Setup: sockets(desk), Want: gone(),
			Control: Control{Host: true, Args: desk}},
		{ID: "NT-08", Group: Secrets, Title: "agents and editors by environment", Tries: "look for the variables",
			Must: "unset", Layer: "env", Act: "env",
			Args: []string{"SSH_AUTH_SOCK", "SSH_AGENT_PID", "GPG_AGENT_INFO", "GNOME_KEYRING_CONTROL",
				"OP_SERVICE_ACCOUNT_TOKEN", "GIT_ASKPASS", "SSH_ASKPASS", "VSCODE_IPC_HOOK_CLI", "VSCODE_GIT_IPC_HANDLE", "TMUX",
				"STY", "KITTY_LISTEN_ON",
				"WEZTERM_UNIX_SOCKET", "NVIM", "CLAUDE_CODE_SSE_PORT", "SBX_TEST_TOKEN"}, Want: []string{"NONE"}, Control: env},
		{ID: "NT-09", Group: Network, Title: "AF_VSOCK", Tries: "socket(2)",
			Must: "refused: vsock ignores network namespaces", Layer: "seccomp", Act: "vsock", Want: []string{"EAFNOSUPPORT",
				"EPERM", "EACCES"},
			Control: Control{Off: []string{"seccomp"}, Host: true, Needs: []string{"vsock"}}},
		{ID: "NT-10", Group: Network, Title: "netlink families other than route", Tries: "socket(2) for eleven",
			Must: "refused", Layer: "seccomp", Act: "netlink", Want: []string{"EPERM", "EPROTONOSUPPORT", "EAFNOSUPPORT",
				"EACCES"},
			Control: Control{Off: []string{"seccomp"}, Host: true, Needs: []string{"netlink"}}},
		{ID: "NT-24", Group: Network, Title: "protocols of the kernel within TCP and UDP",
			Tries: "TCP_ULP for TLS, ESP and SMC, UDP_ENCAP for ESP and L2TP",
			Must:  "refused", Layer: "seccomp", Act: "protocols", Want: []string{"ENOPROTOOPT"},
			Control: Control{Off: []string{"seccomp"}, Host: true}},
		{ID: "NT-20", Group: Network, Title: "QUIC, DNS and other UDP",
			Tries: "UDP on five ports of documentation addresses", Must: "no answer", Layer: "netns", Act: "udp", Args: docs,
			Want: plus(none, "EAGAIN", "ECONNREFUSED"), Control: lab},
		{ID: "NT-21", Group: Network, Title: "listening ports seen from outside",
			Tries: "the host's loopback dials a port bound inside", Must: "no connection comes in",
			Layer: "netns", Act: "listen", Args: []string{"{READY}", "{PORT}"}, During: []Step{{Kind: "dial",
				To: "127.0.0.1:{PORT}"}}, Want: []string{"NONE", "EPERM", "EACCES"}, Control: Control{Off: []string{"netns"},
				Host: true}},
		{ID: "BP-01", Group: Network, Title: "the broker's control socket", Tries: "connect by path and by abstract name",
			Must: "no answer", Layer: "mount view", Act: "control",
			Args: []string{"{RUN}/sbx/*/sock", "{RUN}/sbx/sock", "{HOME}/.local/state/sbx/sessions/*/sock", "/tmp/sbx*/*/sock",
				"/run/user/*/sbx/*/sock", "@sbx", "@sbx-control"}, Want: gone(), Control: Control{Host: true,
				Args: []string{"{HSOCK}"}}},
	}
}

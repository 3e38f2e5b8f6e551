//go:build linux

package checks

// machines: --vm shows images and nothing else.
func machines() []Check {
	const image = "{HOME}/.local/share/images/disk.img"
	setup := files("{HOME}/.local/share/images", "CANARY-IMAGE\n", "disk.img")
	return append(again(VM, "VM-", []string{"--vm"}), []Check{
		{ID: "VM-01", Group: VM, Title: "images without --vm", Tries: "read one", Must: "not there", Layer: "mount view",
			Act: "read", Args: []string{image}, Setup: setup, Want: hidden(), Control: Control{Options: []string{"--vm"}}},
		{ID: "VM-02", Group: VM, Title: "writing into an image", Tries: "append", Must: "read-only", Layer: "mount view",
			Act: "append", Args: []string{image}, Setup: setup, Options: []string{"--vm"}, Want: blocked(),
			Control: Control{Options: []string{"--rw", "{HOME}/.local/share/images"}}},
		{ID: "VM-03", Group: VM, Title: "devices with --vm", Tries: "open kvm, vhost, tun, vfio", Must: "absent",
			Layer: "dev", Act: "devs",
			Args: []string{"/dev/kvm", "/dev/vhost-net", "/dev/vhost-vsock", "/dev/net/tun", "/dev/vfio/vfio", "/dev/vsock",
				"/dev/fuse"}, Options: []string{"--vm"}, Want: hidden(), Control: Control{Host: true, Needs: []string{"device"}}},
		{ID: "VM-04", Group: VM, Title: "secrets with --vm", Tries: "read", Must: "not there", Layer: "mount view",
			Act: "read", Args: []string{"{SECRET}", "{HOME}/.aws/credentials"}, Options: []string{"--vm"}, Want: hidden(),
			Control: onHost()},
		{ID: "VM-05", Group: VM, Title: "running a program from the images", Tries: "map it executable", Must: "refused",
			Layer: "mount view", Act: "mapexec", Args: []string{image}, Setup: setup, Options: []string{"--vm"},
			Want: []string{"EPERM", "EACCES"}, Control: onHost()},
	}...)
}

// packages: a daemon that fills a store, behind the filter.
func packages() []Check {
	const socket, store = "{LAB}/nix/socket", "{LAB}/nix/store"
	setup := []Setup{
		{Kind: "file", Path: store + "/fetch.drv",
			Text: `Derive([("out","{LAB}/nix/store/o","r:sha256","00")],[],[],"x","/bin/sh",[],[])`},
		{Kind: "nixdaemon", Path: socket, Text: store},
	}
	config := "[[store]]\npath = \"" + store + "\"\nsocket = \"" + socket + "\"\nprotocol = \"nix\"\n"
	all := func(ops ...string) []string { return append([]string{socket}, ops...) }
	no := []string{"REFUSED", "CLOSED"}
	return []Check{
		{ID: "NIX-01", Group: Nix, Title: "the daemon without a grant", Tries: "connect", Must: "not there",
			Layer: "mount view", Act: "connect", Args: []string{socket}, Setup: setup, Want: gone(), Control: onHost()},
		{ID: "NIX-02", Group: Nix, Title: "maintenance of the store", Tries: "collect garbage, optimise, verify, list roots",
			Must: "refused", Layer: "filter", Act: "nixops", Args: all("20", "34", "35", "14"), Setup: setup, Config: config,
			Want: no, Control: onHost()},
		{ID: "NIX-03", Group: Nix, Title: "what only trusted users may",
			Tries: "a derivation of one's own, signatures, realisations, logs, roots", Must: "refused", Layer: "filter",
			Act:  "nixops",
			Args: all("36", "37", "42", "45", "47", "27"), Setup: setup, Config: config, Want: no, Control: onHost()},
		{ID: "NIX-04", Group: Nix, Title: "operations nobody knows", Tries: "four numbers", Must: "refused", Layer: "filter",
			Act: "nixops", Args: all("48", "99", "4294967296", "2"), Setup: setup, Config: config, Want: no, Control: onHost()},
		{ID: "NIX-05", Group: Nix, Title: "a hook of one's own", Tries: "post-build-hook in the options",
			Must: "not passed on", Layer: "filter", Act: "nixops", Args: all("hook"), Setup: setup, Config: config, Want: no,
			Control: onHost()},
		{ID: "NIX-06", Group: Nix, Title: "the network by way of a build", Tries: "build a fixed output", Must: "refused",
			Layer: "filter", Act: "nixops", Args: all("9"), Setup: setup, Config: config, Want: no, Control: onHost()},
		{ID: "NIX-07", Group: Nix, Title: "writing into the store", Tries: "append", Must: "read-only", Layer: "mount view",
			Act: "append", Args: []string{store + "/fetch.drv"}, Setup: setup, Config: config, Want: blocked(),
			Control: onHost()},
	}
}

// grants: doors with a filter.
func grants() []Check {
	agent := []Setup{{Kind: "agent", Path: "{RUN}/agent.sock"}}
	no := []string{"REFUSED", "CLOSED"}
	return []Check{
		{ID: "GR-01", Group: Grants, Title: "changing the SSH agent",
			Tries: "add, remove, lock, unlock, smart cards, extensions", Must: "refused", Layer: "filter", Act: "agentops",
			Args: []string{"17", "25", "18", "19", "9", "20", "26", "21", "22", "23", "27", "200"}, Setup: agent,
			Options: []string{"--ssh-agent"}, Want: no, Control: onHost()},
		{ID: "GR-02", Group: Grants, Title: "a login where commits alone are granted",
			Tries: "a signature that is no commit's", Must: "refused", Layer: "filter", Act: "agentops", Args: []string{"13"},
			Setup:   agent,
			Options: []string{"--ssh-agent=sign-git"}, Want: no, Control: Control{Options: []string{"--ssh-agent"}}},
		{ID: "GR-03", Group: Grants, Title: "a key that was not chosen", Tries: "a signature", Must: "refused",
			Layer: "filter", Act: "agentops", Args: []string{"13"}, Setup: agent,
			Options: []string{"--ssh-agent=other"}, Want: no, Control: Control{Options: []string{"--ssh-agent=c"}}},
		{ID: "GR-04", Group: Grants, Title: "the agent's own socket", Tries: "connect beside the filter", Must: "not there",
			Layer: "mount view", Act: "connect", Args: []string{"{RUN}/agent.sock"}, Setup: agent,
			Options: []string{"--ssh-agent"}, Want: gone(),
			Control: onHost()},
		{ID: "GR-05", Group: Grants, Title: "the agent without a grant", Tries: "list its keys", Must: "not there",
			Layer: "mount view", Act: "agentops", Args: []string{"11"}, Setup: agent, Want: plus(gone(), "EINVAL"),
			Control: Control{Options: []string{"--ssh-agent"}}},
		{ID: "GR-06", Group: Grants, Title: "a socket beside one that was granted", Tries: "connect", Must: "not there",
			Layer: "mount view", Act: "connect", Args: []string{"{LAB}/doors/b"},
			Setup:   []Setup{{Kind: "socket", Path: "{LAB}/doors/a"}, {Kind: "socket", Path: "{LAB}/doors/b"}},
			Options: []string{"--socket", "{LAB}/doors/a"}, Want: gone(), Control: Control{Options: []string{"--socket",
				"{LAB}/doors/b"}}},
	}
}

// alone: --only.
func alone() []Check {
	check := func(id, title, tries string, want []string, ways ...string) Check {
		return Check{ID: id, Group: Only, Title: title, Tries: tries, Must: "refused", Layer: "noexec mounts",
			Act: "execother", Args: ways, Options: []string{"--only", "{PROBE}"}, Want: want,
			Control: Control{Options: []string{}}}
	}
	no := []string{"EACCES", "EPERM", "ENOENT"}
	return []Check{
		check("ON-01", "programs that were not named", "run one, run a shell", no, "program", "shell"),
		check("ON-02", "copies of what was named", "run them from /tmp, the project, /dev/shm", no, "copy", "project"),
		check("ON-03", "the dynamic loader", "run a program by it, and by a copy of it", no, "loader", "loadercopy"),
		check("ON-04", "scripts", "run one of a shell, and one of a program with a flag", no, "script", "scriptself"),
		check("ON-05", "programs in memory", "run a file in memory, also one that is made to be run", plus(no, "EINVAL",
			"ENOSYS"), "memfd", "memfdexec"),
		check("ON-06", "a descriptor of a program", "run /proc/PID/fd/N", no, "fd"),
		check("ON-07", "code without exec", "map a file executable, make a mapping executable", no, "map", "protect"),
		{ID: "ON-08", Group: Only, Title: "opening by io_uring", Tries: "set it up", Must: "refused", Layer: "seccomp",
			Act: "iouring", Args: []string{"{SECRET}"}, Options: []string{"--only", "{PROBE}"}, Want: filter(),
			Control: Control{Host: true, Needs: []string{"io_uring"}}},
	}
}

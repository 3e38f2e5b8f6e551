// Package manual says in one sentence what each setting is for. It must never know what a setting does: it holds words.
// policy describes its keys with it, for help and manual.
package manual

// Sentence is what the manual says about a key.
func Sentence(key string) string {
	switch key {
	case "sandbox.enabled":
		return "Whether there is a sandbox at all; false runs everything on the host, loudly and audited."
	case "sandbox.profile":
		return "What is visible and writable to begin with; a name of [profiles] does too."
	case "sandbox.mode":
		return "Whether what is not granted is refused (static) or asked about (dynamic)."
	case "sandbox.untrusted":
		return "Whether commands are a stranger's: the profile is strict or one that shows less, nothing is asked, and " +
			"nothing but the command itself and what --only names can be executed."
	case "sandbox.backend":
		return "What holds the program; auto takes the strongest that can be had: native, a set-user-id helper, landlock. " +
			"bwrap (bubblewrap), vm (a virtual machine) and devcontainer (the project's) are taken where they are named, " +
			"bwrap also before Linux 5.12."
	case "sandbox.gate":
		return "How questions arise: by the FUSE skeleton (gatefs), by seccomp notifications (notify), or by whichever " +
			"works here."
	case "sandbox.fallback_on_unavailable":
		return "What happens where no sandbox can be built: nothing is run (block), or the command runs on the host with " +
			"a warning."
	case "sandbox.debug":
		return "Whether ptrace works inside, on the sandbox's own processes."
	case "sandbox.timeout":
		return "When everything inside is ended, with exit status 124; 0 is never."
	case "sandbox.non_root_user":
		return "Whether the user keeps its numbers inside; false makes it uid 0 there."
	case "sandbox.strict":
		return "Whether anything that this host cannot enforce is an error."
	case "sandbox.prompt":
		return "Who answers questions."
	case "sandbox.prompt_timeout":
		return "How long a question waits before it is denied."
	case "sandbox.prompt_command":
		return "A command that is given each question and may print the answer."
	case "sandbox.programs":
		return "Where pasta, slirp4netns or xdg-dbus-proxy lie if not in a system directory; PATH is never searched for " +
			"them, because a project decides what it finds."
	case "sandbox.questions":
		return "How many questions may be open at once; what exceeds it is denied."
	case "sandbox.stat":
		return "What may be seen of a file before it is granted: nothing without a question (ask), or its type (type-only)."
	case "sandbox.new_session":
		return "Kept for other tools' files: the program never shares the caller's terminal session."
	case "sandbox.share_pid":
		return "Kept for other tools' files: the host's processes are never visible."
	case "sandbox.hostname":
		return "The host name inside; by default it names the session."
	case "sandbox.workdir":
		return "The directory to start in, which is the project."
	case "sandbox.workdir_at":
		return "The path at which the project is inside; by default it is the host's."
	case "fs.read_only":
		return "Paths to show read-only; a ? at the end makes one optional."
	case "fs.writable":
		return "Paths to show writable in place."
	case "fs.overlay":
		return "Paths to show below a writable layer that is thrown away."
	case "fs.tmpfs":
		return "Paths at which there is an empty writable place."
	case "fs.hidden":
		return "Paths that do not exist inside."
	case "fs.secrets":
		return "Secrets beyond the built-in list: they do not exist inside and cannot be granted."
	case "fs.ask":
		return "Paths that are asked about although something around them is readable."
	case "fs.reveal":
		return "Secret files, as paths, about which a dynamic session asks whether to show them, read-only. From then on " +
			"contact with who does not accept secret:PATH asks. Where the organisation makes it final, no other secret is " +
			"ever shown."
	case "fs.caches":
		return "How tool caches are shown at their usual paths: the host's with a layer that the project's next run finds " +
			"(project) or that is thrown away (overlay), read-only (ro), or the host's own, where they exist (rw)."
	case "fs.shell_files":
		return "What of your shells' start-up files is shown, read-only: all of it, nothing, or each when somebody has " +
			"said yes. At the first shell on a terminal you are asked once, and the answer is written to your config.toml."
	case "fs.no_sym_follow":
		return "Whether symbolic links are not followed in writable places: the project, what is granted for writing, " +
			"layers and /tmp. They can still be made and read."
	case "fs.made_repositories":
		return "What becomes of hooks and settings of repositories that a session made: told at its end, or made harmless " +
			"as well."
	case "agents.auto":
		return "Whether the profile of an agent is taken when its program is run by its name, without --agent."
	case "agents.login":
		return "Agents that are shown their own login files; you are asked once for each, on a terminal."
	case "agents.hide_login":
		return "Agents that are never shown their login files, and about which you are not asked."
	case "vm.kernel":
		return "The kernel's image for a virtual machine, a bzImage or vmlinux; its modules are looked for in " +
			"../lib/modules and /lib/modules. Without it /boot/vmlinuz of the running kernel, or the newest there."
	case "vm.accel":
		return "Whether a virtual machine uses /dev/kvm: where you may open it (auto), or else not at all (kvm), or never."
	case "vm.machine":
		return "The kind of virtual machine that QEMU makes: microvm with KVM and pc without (auto), or always pc. A " +
			"microvm without KVM finds no clock."
	case "bwrap.enforce":
		return "Whether sbx in bubblewrap's place hides secrets and guards what is written below, whatever the words show. " +
			"Yours or the organisation's alone."
	case "bwrap.ask":
		return "Whether sbx in bubblewrap's place asks about what the words hide with --tmpfs and --ro-bind-data. Yours or " +
			"the organisation's alone."
	case "fs.tmp_size":
		return "The size of each temporary file system."
	case "network.allow":
		return "Whether there is a network beyond the sandbox's own loopback."
	case "network.hosts":
		return "The hosts that may be reached; with an empty list and allow = true, every public one."
	case "network.publish":
		return "Ports inside that can be reached at the host."
	case "network.host_ports":
		return "Ports of the host's loopback that can be reached from inside."
	case "network.mode":
		return "What carries the network."
	case "network.loopback":
		return "Whether there is a loopback (127.0.0.1 and ::1) inside. Without it there is no network either."
	case "network.tls":
		return "Whether connections to listed names must name them (sni): each on its ports 80 and 443, as if its entry " +
			"ended in ,tls=sni."
	case "network.labelled":
		return "What becomes of open connections when a session has read a labelled place that they may not hear of: what " +
			"they send waits for an answer (hold), or they end (cut)."
	case "network.with":
		return "Credentials of [credential.NAME] that stand for themselves outside: inside are placeholders, and sbx-proxy " +
			"puts the values into requests to the credential's own hosts."
	case "network.endpoints":
		return "Addresses of models' APIs of [endpoint.NAME] that a run may use within their bounds; nothing else of the " +
			"network is needed."
	case "limits.memory":
		return "The memory of all processes together."
	case "limits.memory_high":
		return "The memory beyond which processes are slowed and asked to give some back."
	case "limits.pids":
		return "The number of processes and threads."
	case "limits.cpu":
		return "Processor time."
	case "limits.io":
		return "Bandwidth of block devices."
	case "env.clear":
		return "Whether the environment begins empty: none of your variables is passed but those that env.pass names."
	case "env.pass":
		return "Variables that are passed."
	case "env.set":
		return "Variables that are set."
	case "env.deny":
		return "Variables that are never passed."
	case "features.nested":
		return "Whether programs can make sandboxes of their own inside."
	case "features.containers":
		return "Whether rootless containers work inside."
	case "features.containers_shared":
		return "Whether containers inside use the user's own store."
	case "features.vm":
		return "Whether virtual machines are prepared for inside."
	case "features.kvm":
		return "Whether /dev/kvm is there, which shows programs more of the kernel."
	case "features.nix":
		return "Whether the Nix daemon can be reached, through a filter."
	case "features.ssh_agent":
		return "Whether the SSH agent can be used."
	case "features.gpg_agent":
		return "Whether the GnuPG agent's restricted socket can be used."
	case "features.wayland":
		return "Whether windows can be opened on the Wayland compositor."
	case "features.x11":
		return "Refused, with the reason, unless there is a server for it: an X11 client can read every key."
	case "features.x11_server":
		return "Socket of an X server that shows nothing else, such as a nested Xephyr's, /tmp/.X11-unix/X7."
	case "audit.forward":
		return "a copy of every audit record for the system's log"
	case "features.dbus":
		return "Whether the session bus can be reached."
	case "features.sockets":
		return "Sockets of the host that can be connected to."
	case "features.stores":
		return "Stores of packages, read-only, each with the socket of its daemon: PATH:SOCKET:PROTOCOL, or [[store]] " +
			"path, socket, protocol."
	}
	return ""
}

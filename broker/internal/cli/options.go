package cli

import (
	"time"

	"sbx/broker/internal/planner"
)

// runOptions is the one table of `sbx run`.
func runOptions() []option {
	return append(hookOptions(), []option{
		{"profile", "p", "NAME", "sandbox.profile", "profile", "strict, moderate, permissive or one of the configuration's", setString(func(r *request) *string { return &r.profile })},
		{"mode", "", "MODE", "sandbox.mode", "profile", "dynamic asks about what is not granted, static refuses it", setString(func(r *request) *string { return &r.mode }, "dynamic", "static")},
		{"static", "", "", "", "profile", "the same as --mode static", func(r *request, _ string) error { r.mode = "static"; return nil }},
		{"gate", "", "ENGINE", "sandbox.gate", "profile", "auto, gatefs or notify", setString(func(r *request) *string { return &r.gate }, "auto", "gatefs", "notify")},
		{"prompt", "", "WHERE", "sandbox.prompt", "profile", "who answers questions: auto, tty, socket, deny or allow", setString(func(r *request) *string { return &r.prompt }, "auto", "tty", "socket", "deny", "allow")},
		{"learn", "", "FILE", "", "profile", "allow reading, write nothing outside, and write the policy that this run needs to FILE, for review", setString(func(r *request) *string { return &r.learn })},
		{"prompt-timeout", "", "TIME", "sandbox.prompt_timeout", "profile", "a question that nobody answers within TIME is answered no (default 5m)", setDuration(func(r *request) *time.Duration { return &r.promptTimeout })},
		{"prompt-command", "", "CMD", "sandbox.prompt_command", "profile", "a command that is given each question and may answer it", setString(func(r *request) *string { return &r.promptCommand })},
		{"strict", "", "", "sandbox.strict", "profile", "refuse to run when anything of the sandbox cannot be had here", setBool(func(r *request) *bool { return &r.strict })},

		{"ro", "", "PATH", "fs.read_only", "files", "show PATH read-only", addPath("ro", planner.Read)},
		{"rw", "", "PATH", "fs.writable", "files", "show PATH, writable in place", addPath("rw", planner.Write)},
		{"overlay", "", "PATH", "fs.overlay", "files", "show PATH below a writable layer that is thrown away", addPath("overlay", planner.Overlay)},
		{"tmpfs", "", "PATH", "fs.tmpfs", "files", "an empty writable place at PATH", addPath("tmpfs", planner.Scratch)},
		{"hide", "", "PATH", "fs.hidden", "files", "PATH does not exist inside", appendTo(func(r *request) *[]string { return &r.hide })},
		{"blacklist", "", "PATH", "", "files", "the same as --hide", appendTo(func(r *request) *[]string { return &r.hide })},
		{"secret", "", "PATH", "fs.secrets", "files", "PATH is a secret: it does not exist inside and cannot be granted", appendTo(func(r *request) *[]string { return &r.secret })},
		{"workdir", "", "DIR", "", "files", "start in DIR, which is the project", setString(func(r *request) *string { return &r.workdir })},
		{"caches", "", "HOW", "fs.caches", "files", "tool caches: overlay, rw or ro", setString(func(r *request) *string { return &r.caches }, "overlay", "rw", "ro")},
		{"ephemeral", "", "", "", "files", "the project is an overlay too", setBool(func(r *request) *bool { return &r.ephemeral })},
		{"keep", "", "", "", "files", "keep the overlays after the run", setBool(func(r *request) *bool { return &r.keep })},
		{"memory", "", "SIZE", "limits.memory", "limits", "memory of everything inside: 2G, or 50% of the machine's (default 75%)", setString(func(r *request) *string { return &r.memory })},
		{"memory-high", "", "SIZE", "limits.memory_high", "limits", "memory from which it is slowed down", setString(func(r *request) *string { return &r.memoryHigh })},
		{"pids", "", "N", "limits.pids", "limits", "processes and threads (default 4096)", setCount(func(r *request) *int { return &r.pids })},
		{"cpu", "", "SHARE", "limits.cpu", "limits", "processor time: 150% is one and a half processors", setString(func(r *request) *string { return &r.cpu })},
		{"io", "", "RATE", "limits.io", "limits", "bytes a second from and to the project's disk: 50M, or read=50M,write=10M", setString(func(r *request) *string { return &r.io })},
		{"kill-if", "", "RULE", "", "limits", "end the session when it uses too much: memory>90% for 30s, cpu>150% for 1m, pids>500", addRule},
		{"tmp-size", "", "SIZE", "limits.tmp_size", "limits", "size of each temporary file system (default 1G)", setString(func(r *request) *string { return &r.tmpSize })},

		{"env", "", "K[=V]", "env.set", "environment", "set K, or pass the caller's", addEnv},
		{"env-pass", "", "GLOB", "env.pass", "environment", "pass variables whose names match", appendTo(func(r *request) *[]string { return &r.envPass })},
		{"hostname", "", "NAME", "", "environment", "host name inside (default sbx-SID)", setString(func(r *request) *string { return &r.hostname })},

		{"socket", "", "PATH", "features.sockets", "sockets", "let it connect to the socket PATH of the host", addSocket},
		{"ssh-agent", "", "[=KEY,...|sign-git]", "features.ssh_agent", "sockets", "let it use the keys of the SSH agent, or only those named by comment or fingerprint, or only to sign commits and tags", setSSHAgent},
		{"gpg-agent", "", "", "features.gpg_agent", "sockets", "let it use the GnuPG agent's restricted socket", setBool(func(r *request) *bool { return &r.gpgAgent })},
		{"wayland", "", "", "features.wayland", "sockets", "let it open windows on the Wayland compositor", setBool(func(r *request) *bool { return &r.wayland })},
		{"x11", "", "", "features.x11", "sockets", "refused, with the reason, unless features.x11_server names the socket of a server that shows nothing else", setBool(func(r *request) *bool { return &r.x11 })},
		{"dbus", "", "[=NAME,...]", "features.dbus", "sockets", "let it use the session bus through a filter: notifications, and the services named", setDBus},

		{"allow-network", "", "", "network.allow", "network", "let it reach every public address", setBool(func(r *request) *bool { return &r.allowNetwork })},
		{"allow-host", "", "RULE", "network.hosts", "network", "let it reach NAME, *.NAME, ADDRESS or RANGE, with :PORT, :LOW-HIGH or :*, and /udp, /icmp or ,tls=sni", appendTo(func(r *request) *[]string { return &r.allowHosts })},
		{"publish", "", "HOST:PORT", "network.publish", "network", "lead the host's port HOST (of 127.0.0.1, or ADDRESS:HOST) to its port PORT", appendTo(func(r *request) *[]string { return &r.publish })},
		{"host-port", "", "PORT", "network.host_ports", "network", "lead its 127.0.0.1:PORT to the host's", appendTo(func(r *request) *[]string { return &r.hostPorts })},
		{"net", "", "HOW", "network.mode", "network", "none, auto, pasta, slirp4netns or veth", setString(func(r *request) *string { return &r.net }, "none", "auto", "pasta", "slirp4netns", "veth")},

		{"containers", "", "[=shared]", "features.containers", "containers and virtual machines", "let rootless podman and crun work inside, with a store of the session's own, or with yours", setContainers},
		{"vm", "", "", "features.vm", "containers and virtual machines", "let QEMU find its images, read-only; it needs nothing else inside", setBool(func(r *request) *bool { return &r.vm })},
		{"allow-kvm", "", "", "features.kvm", "containers and virtual machines", "show /dev/kvm, which opens more of the kernel to the program; implies --vm", setBool(func(r *request) *bool { return &r.kvm })},

		{"nix", "", "[=fetch|off]", "features.nix", "packages", "let it use the Nix daemon, through a filter (by itself where there is one, but not with --profile strict); fetch: with --allow-network also for builds that use the network", setNix},

		{"timeout", "", "TIME", "sandbox.timeout", "process", "end everything after TIME (exit status 124)", setDuration(func(r *request) *time.Duration { return &r.timeout })},
		{"time-offset", "", "TIME", "", "process", "start the monotonic and boot clocks inside TIME later", setDuration(func(r *request) *time.Duration { return &r.timeOffset })},
		{"as-pid-1", "", "", "", "process", "CMD is process 1 itself, without a reaper", setBool(func(r *request) *bool { return &r.asPID1 })},
		{"new-session", "", "", "", "process", "accepted for compatibility: CMD never shares the caller's session", accept},
		{"share-pid", "", "", "", "process", "accepted for compatibility: the host's processes are never visible", accept},
		{"no-debug", "", "", "sandbox.debug", "process", "no ptrace inside", setBool(func(r *request) *bool { return &r.noDebug })},
		{"only", "", "CMD", "", "process", "nothing but CMD (repeatable) and the command itself can be executed, each with its interpreter and libraries; implies --static", addOnly},
		{"detach", "d", "", "", "process", "return when the sandbox stands and print its SID; without CMD it stands for sbx exec", setBool(func(r *request) *bool { return &r.detach })},
		{"name", "", "SID", "", "process", "name of the session", setName},

		{"backend", "", "NAME", "", "run", "native, or passthrough (the same as --no-sandbox)", setBackend},
		{"no-sandbox", "", "", "sandbox.enabled", "run", "run CMD on the host, loudly", setBool(func(r *request) *bool { return &r.noSandbox })},
		{"no-suid", "", "", "", "run", "run sbx-helper with no_new_privs set, so that its set-user-id bit is ignored, and never by sudo", setBool(func(r *request) *bool { return &r.noSuid })},
		{"dry-run", "", "", "", "run", "print the plan and do nothing", setBool(func(r *request) *bool { return &r.dryRun })},
		{"json", "", "", "", "run", "machine-readable output", setBool(func(r *request) *bool { return &r.json })},
		{"verbose", "v", "", "", "run", "print active restrictions", setBool(func(r *request) *bool { return &r.verbose })},
		{"quiet", "q", "", "", "run", "print nothing but errors", setBool(func(r *request) *bool { return &r.quiet })},
		{"help", "h", "", "", "run", "this text", setBool(func(r *request) *bool { return &r.help })},
	}...)
}

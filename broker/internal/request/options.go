package request

import (
	"sbx.example/sbx/broker/internal/option"
	"sbx.example/sbx/broker/internal/planner"
)

// Options is the one table of `sbx run`: a row is all there is about an option. What it asks for goes to r.
func (r *Request) Options() []option.Option {
	rows := r.hookOptions()
	for _, g := range []struct {
		name string
		rows []option.Option
	}{
		{"profile", r.profileOptions()},
		{"files", r.fileOptions()},
		{"limits", r.limitOptions()},
		{"environment", r.environmentOptions()},
		{"sockets", r.socketOptions()},
		{"network", r.networkOptions()},
		{"containers and virtual machines", r.machineOptions()},
		{"packages", r.packageOptions()},
		{"process", r.processOptions()},
		{"run", r.outputOptions()},
	} {
		for _, o := range g.rows {
			o.Group = g.name
			rows = append(rows, o)
		}
	}
	return rows
}

func (r *Request) profileOptions() []option.Option {
	return []option.Option{
		{Name: "profile", Short: "p", Arg: "NAME", Key: "sandbox.profile",
			Value: option.Text(&r.Profile).With(r.setProfile).Of(option.Profile),
			Help:  "strict, moderate, permissive or one of the configuration's"},
		{Name: "agent", Arg: "NAME", Value: option.Text(&r.Agent).NotEmpty().Of(option.Agent),
			Help: "let the agent NAME have what its profile says it needs: claude-code, codex, gemini-cli, ..."},
		{Name: "mode", Arg: "MODE", Key: "sandbox.mode", Value: option.Choice(&r.Mode, "dynamic", "static"),
			Help: "dynamic asks about what is not granted, static refuses it"},
		{Name: "static", Value: option.Func(func(string) error { r.Mode = "static"; return nil }),
			Help: "the same as --mode static"},
		{Name: "gate", Arg: "ENGINE", Key: "sandbox.gate", Value: option.Choice(&r.gate, "auto", "gatefs", "notify"),
			Help: "auto, gatefs or notify"},
		{Name: "prompt", Arg: "WHERE", Key: "sandbox.prompt",
			Value: option.Choice(&r.prompt, "auto", "tty", "socket", "deny", "allow"),
			Help:  "who answers questions: auto, tty, socket, deny or allow"},
		{Name: "learn", Arg: "FILE", Value: option.Text(&r.Learn),
			Help: "allow reading, write nothing outside, and write the policy that this run needs to FILE, " +
				"for review"},
		{Name: "prompt-timeout", Arg: "TIME", Key: "sandbox.prompt_timeout", Value: option.Duration(&r.promptTimeout),
			Help: "a question that nobody answers within TIME is answered no (default 5m)"},
		{Name: "prompt-command", Arg: "CMD", Key: "sandbox.prompt_command", Value: option.Text(&r.promptCommand),
			Help: "a command that is given each question and may answer it"},
		{Name: "strict", Key: "sandbox.strict", Value: option.Switch(&r.Strict),
			Help: "refuse to run when anything of the sandbox cannot be had here"},
	}
}

func (r *Request) fileOptions() []option.Option {
	return []option.Option{
		{Name: "ro", Arg: "PATH", Key: "fs.read_only", Value: option.Func(r.addPath("ro", planner.Read)),
			Help: "show PATH read-only"},
		{Name: "rw", Arg: "PATH", Key: "fs.writable", Value: option.Func(r.addPath("rw", planner.Write)),
			Help: "show PATH, writable in place"},
		{Name: "rw-create", Arg: "DIR", Value: option.Func(r.addMade("rw-create", planner.Write)),
			Help: "the same, and make the directory DIR if it is missing"},
		{Name: "overlay", Arg: "PATH", Key: "fs.overlay", Value: option.Func(r.addPath("overlay", planner.Overlay)),
			Help: "show PATH below a writable layer that is thrown away"},
		{Name: "tmpfs", Arg: "PATH", Key: "fs.tmpfs", Value: option.Func(r.addPath("tmpfs", planner.Scratch)),
			Help: "an empty writable place at PATH"},
		{Name: "hide", Arg: "PATH", Key: "fs.hidden", Value: option.List(&r.Hide).Apart(),
			Help: "PATH does not exist inside"},
		{Name: "blacklist", Arg: "PATH", Value: option.List(&r.Hide), Help: "the same as --hide"},
		{Name: "secret", Arg: "PATH", Key: "fs.secrets", Value: option.List(&r.Secret).Apart(),
			Help: "PATH is a secret: it does not exist inside and cannot be granted"},
		{Name: "workdir", Short: "w", Arg: "DIR", Value: option.Text(&r.Workdir),
			Help: "start in DIR, which is the project"},
		{Name: "workdir-at", Arg: "PATH", Key: "sandbox.workdir_at", Value: option.Text(&r.workdirAt).NotEmpty(),
			Help: "the project is at PATH inside, as in --workdir-at /w"},
		{Name: "caches", Arg: "HOW", Key: "fs.caches", Value: option.Choice(&r.caches, "project", "overlay", "rw", "ro"),
			Help: "tool caches: project (kept for its next run), overlay (thrown away), ro, or rw (the host's)"},
		{Name: "shell-files", Arg: "HOW", Key: "fs.shell_files",
			Value: option.Choice(&r.shellFiles, "ask", "show", "hide"),
			Help:  "start-up files of bash, zsh, fish and nushell: ask, show or hide"},
		{Name: "ephemeral", Value: option.Switch(&r.Ephemeral), Help: "the project is an overlay too"},
		{Name: "keep", Value: option.Switch(&r.Keep), Help: "keep the overlays after the run"},
	}
}

func (r *Request) limitOptions() []option.Option {
	return []option.Option{
		{Name: "memory", Arg: "SIZE", Key: "limits.memory", Value: option.Text(&r.memory).NotEmpty(),
			Help: "memory of everything inside: 2G, or 50% of the machine's (default 75%)"},
		{Name: "memory-high", Arg: "SIZE", Key: "limits.memory_high", Value: option.Text(&r.memoryHigh).NotEmpty(),
			Help: "memory from which it is slowed down"},
		{Name: "pids", Arg: "N", Key: "limits.pids", Value: option.Count(&r.pids).NotEmpty(),
			Help: "processes and threads (default 4096)"},
		{Name: "cpu", Arg: "SHARE", Key: "limits.cpu", Value: option.Text(&r.cpu).NotEmpty(),
			Help: "processor time: 150% is one and a half processors"},
		{Name: "io", Arg: "RATE", Key: "limits.io", Value: option.Text(&r.io).NotEmpty(),
			Help: "bytes a second from and to the project's disk: 50M, or read=50M,write=10M"},
		{Name: "kill-if", Arg: "RULE", Value: option.Func(r.addRule).NotEmpty(),
			Help: "end the session when it uses too much: memory>90% for 30s, cpu>150% for 1m, pids>500"},
		{Name: "tmp-size", Arg: "SIZE", Key: "fs.tmp_size", Value: option.Text(&r.tmpSize).NotEmpty(),
			Help: "size of each temporary file system (default 1G)"},
	}
}

func (r *Request) environmentOptions() []option.Option {
	return []option.Option{
		{Name: "env", Short: "e", Arg: "K[=V]", Key: "env.set", Value: option.Func(r.addEnv),
			Help: "set K, or pass the caller's"},
		{Name: "env-file", Arg: "FILE", Value: option.Func(r.addEnvFile),
			Help: "the same for each line of FILE; what begins with # is left out"},
		{Name: "env-clear", Key: "env.clear", Value: option.Switch(&r.envClear),
			Help: "begin with an empty environment: what --env and --env-pass name, HOME, PATH and sbx's own"},
		{Name: "env-pass", Arg: "GLOB", Key: "env.pass", Value: option.List(&r.envPass).With(r.addEnvPass).Apart(),
			Help: "pass variables whose names match"},
		{Name: "hostname", Arg: "NAME", Value: option.Text(&r.Hostname),
			Help: "host name inside (default sbx-SID)"},
	}
}

func (r *Request) socketOptions() []option.Option {
	return []option.Option{
		{Name: "socket", Arg: "PATH", Key: "features.sockets", Value: option.List(&r.sockets).With(r.addSocket),
			Help: "let it connect to the socket PATH of the host"},
		{Name: "ssh-agent", Arg: "[=KEY,...|sign-git]", Key: "features.ssh_agent",
			Value: option.Switch(&r.sshAgent).With(r.setSSHAgent).Suggest("sign-git"),
			Help: "let it use the keys of the SSH agent, or only those named by comment or fingerprint, or " +
				"only to sign commits and tags; known hosts and public keys are shown"},
		{Name: "gpg-agent", Key: "features.gpg_agent", Value: option.Switch(&r.gpgAgent),
			Help: "let it use the GnuPG agent's restricted socket"},
		{Name: "wayland", Key: "features.wayland", Value: option.Switch(&r.wayland),
			Help: "let it open windows on the Wayland compositor"},
		{Name: "x11", Key: "features.x11", Value: option.Switch(&r.x11),
			Help: "refused, with the reason, unless features.x11_server names the socket of a server that " +
				"shows nothing else"},
		{Name: "dbus", Arg: "[=NAME,...]", Key: "features.dbus", Value: option.Switch(&r.dbus).With(r.setDBus),
			Help: "let it use the session bus through a filter: notifications, and the services named"},
	}
}

func (r *Request) networkOptions() []option.Option {
	return []option.Option{
		{Name: "allow-network", Key: "network.allow", Value: option.Switch(&r.AllowNetwork),
			Help: "let it reach every public address"},
		{Name: "allow-host", Arg: "RULE", Key: "network.hosts", Value: option.List(&r.AllowHosts),
			Help: "let it reach NAME, *.NAME, ADDRESS or RANGE, with :PORT, :LOW-HIGH or :*, and /udp, " +
				"/icmp or ,tls=sni"},
		{Name: "with", Arg: "NAME", Key: "network.with", Value: option.List(&r.with),
			Help: "let it use the credential NAME, which is never inside: sbx puts it into requests to its own hosts"},
		{Name: "endpoint", Arg: "NAME", Key: "network.endpoints", Value: option.List(&r.endpoints),
			Help: "let it use the model's API of [endpoint.NAME], within its bounds"},
		{Name: "record", Arg: "FILE", Value: option.Text(&r.Record).NotEmpty(),
			Help: "write what endpoints are asked and answer to FILE, which must be new, without credentials"},
		{Name: "publish", Arg: "HOST:PORT", Key: "network.publish", Value: option.List(&r.publish),
			Help: "lead the host's port HOST (of 127.0.0.1, or ADDRESS:HOST) to its port PORT"},
		{Name: "host-port", Arg: "PORT", Key: "network.host_ports", Value: option.List(&r.hostPorts),
			Help: "lead its 127.0.0.1:PORT to the host's"},
		{Name: "net", Arg: "HOW", Key: "network.mode",
			Value: option.Choice(&r.net, "none", "auto", "pasta", "slirp4netns", "veth"),
			Help:  "none, auto, pasta, slirp4netns or veth"},
		{Name: "no-network", Value: option.Func(func(string) error { r.net = "none"; return nil }),
			Help: "the same as --net none: no network, whatever the configuration says"},
		{Name: "no-loopback", Key: "network.loopback", Value: option.Off(&r.noLoopback),
			Help: "no 127.0.0.1 either: programs inside cannot speak with each other over the network"},
	}
}

func (r *Request) machineOptions() []option.Option {
	return []option.Option{
		{Name: "nested", Key: "features.nested", Value: option.Switch(&r.nested),
			Help: "let programs make sandboxes of their own inside (bwrap, an agent's, sbx run again)"},
		{Name: "containers", Arg: "[=shared]", Key: "features.containers",
			Value: option.Switch(&r.containers).With(r.setContainers).Suggest(sharedStore),
			Implies: []option.Setting{{Key: "features.containers_shared",
				Value: option.Switch(&r.containersShared).Setting}},
			Help: "let rootless podman and crun work inside, with a store of the session's own, or with " +
				"yours"},
		{Name: "vm", Key: "features.vm", Value: option.Switch(&r.vm),
			Help: "let QEMU find its images, read-only; it needs nothing else inside"},
		{Name: "allow-kvm", Key: "features.kvm", Value: option.Switch(&r.kvm).With(r.setKVM),
			Help: "show /dev/kvm, which opens more of the kernel to the program; implies --vm"},
	}
}

func (r *Request) packageOptions() []option.Option {
	return []option.Option{
		{Name: "nix", Arg: "[=fetch|off]", Key: "features.nix",
			Value: option.Text(&r.Nix).With(r.setNix).As(r.nixSetting).Suggest("fetch", "off"),
			Help: "let it use the Nix daemon, through a filter (by itself where there is one, but not with " +
				"--profile strict); fetch: with --allow-network also for builds that use the network"},
	}
}

func (r *Request) processOptions() []option.Option {
	return []option.Option{
		{Name: "timeout", Arg: "TIME", Key: "sandbox.timeout", Value: option.Duration(&r.Timeout),
			Help: "end everything after TIME (exit status 124)"},
		{Name: "time-offset", Arg: "TIME", Value: option.Duration(&r.TimeOffset),
			Help: "start the monotonic and boot clocks inside TIME later"},
		{Name: "as-pid-1", Value: option.Switch(&r.AsPID1),
			Help: "CMD is process 1 itself, without a reaper"},
		{Name: "new-session", Value: option.Accepted(),
			Help: "accepted for compatibility: CMD never shares the caller's session"},
		{Name: "share-pid", Value: option.Accepted(),
			Help: "accepted for compatibility: the host's processes are never visible"},
		{Name: "rm", Value: option.Accepted(),
			Help: "accepted for compatibility: nothing stays but the record, unless --keep"},
		{Name: "interactive", Short: "i", Value: option.Accepted(),
			Help: "accepted for compatibility: CMD has the caller's standard input"},
		{Name: "tty", Short: "t", Value: option.Accepted(),
			Help: "accepted for compatibility: CMD has a terminal where the caller has one"},
		{Name: "no-debug", Key: "sandbox.debug", Value: option.Off(&r.noDebug), Help: "no ptrace inside"},
		{Name: "only", Arg: "CMD", Value: option.Func(r.addOnly).Of(option.Program),
			Help: "nothing but CMD (repeatable) and the command itself can be executed, each with its " +
				"interpreter and libraries; implies --static"},
		{Name: "untrusted", Key: "sandbox.untrusted", Value: option.Switch(&r.untrusted),
			Help: "CMD is a stranger's: as with --only for it alone, in the profile strict or one that shows less"},
		{Name: "detach", Short: "d", Value: option.Switch(&r.Detach),
			Help: "return when the sandbox stands and print its SID; without CMD it stands for sbx exec"},
		{Name: "name", Arg: "SID", Value: option.Func(r.setName), Help: "name of the session"},
	}
}

func (r *Request) outputOptions() []option.Option {
	return []option.Option{
		{Name: "backend", Arg: "NAME", Key: "sandbox.backend",
			Value: option.Text(&r.Backend).With(r.setBackend).Suggest("auto", "native", "helper", "bwrap", "landlock", "vm",
				"devcontainer", "passthrough"),
			Help: "what holds the program: auto, native, helper, bwrap, landlock, vm (a virtual machine), devcontainer (the " +
				"project's, in a sandbox), or passthrough (the same as --no-sandbox)"},
		{Name: "no-sandbox", Key: "sandbox.enabled", Value: option.Off(&r.NoSandbox),
			Help: "run CMD on the host, loudly"},
		{Name: "unless-sandboxed", Value: option.Switch(&r.UnlessSandboxed),
			Help: "in a session already, execute CMD and do nothing else: it is held as that session says"},
		{Name: "no-suid", Value: option.Switch(&r.NoSuid),
			Help: "run sbx-helper with no_new_privs set, so that its set-user-id bit is ignored, and never " +
				"by sudo"},
		{Name: "exit-blocked", Value: option.Switch(&r.ExitBlocked),
			Help: "exit with status 123 where CMD failed and sbx has refused it something"},
		{Name: "dry-run", Value: option.Switch(&r.DryRun),
			Help: "say what would be done and do nothing; -v prints the whole plan"},
		{Name: "json", Value: option.Switch(&r.JSON), Help: "machine-readable output"},
		{Name: "verbose", Short: "v", Value: option.Switch(&r.Verbose), Help: "print active restrictions"},
		{Name: "quiet", Short: "q", Value: option.Switch(&r.Quiet), Help: "print nothing but errors"},
	}
}

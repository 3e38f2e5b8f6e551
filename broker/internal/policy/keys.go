package policy

import "time"

// typ is what a key holds.
type typ int

const (
	tBool typ = iota
	tEnum
	tName // a short word
	tText
	tDuration
	tInt
	tSize
	tCPU
	tPath
	tPaths
	tPatterns
	tHosts
	tPublish
	tPorts
	tGlobs
	tNames   // of profiles
	tServers // hosts with one name and one port each
	tRequests
	tScopes // what an access key may sign for
	tModels
	tWords     // any text, each a word
	tArguments // patterns of them
	tStores
	tMap
)

// limit says which change of a key is no widening; an unpinned project file may make no other.
type limit int

const (
	never    limit = iota // any change could widen
	toFalse               // true is wider
	toTrue                // false is wider
	toFirst               // values are listed from narrow to wide
	toLess                // a smaller number, 0 or none being without limit
	byAdding              // entries forbid: more is narrower
	bySubset              // entries grant: only what is granted already, or less
)

// key is one row: everything the loader, the merge and the diff need to know about a configuration key.
type key struct {
	name       string
	typ        typ
	limit      limit
	words      []string // of tEnum, narrow to wide
	host       bool     // decides about the host side: not from a project that is merely trusted, unless narrower
	viaProfile bool     // absent means what the profile says
	asks       bool     // who sets it asks for something, whatever the value
	closes     bool     // false that somebody has set closes what is open by itself
	ptr        func(*Config) any
}

// keyTable is the whole vocabulary of config.toml. It is built on call so that a run without files does not pay for it.
func keyTable() []key {
	return []key{
		{name: "sandbox.enabled", typ: tBool, limit: toTrue, host: true,
			ptr: func(c *Config) any { return &c.Sandbox.Enabled }},
		{name: "sandbox.profile", typ: tName, limit: toFirst, words: []string{"strict", "moderate", "permissive"},
			ptr: func(c *Config) any { return &c.Sandbox.Profile }},
		{name: "sandbox.mode", typ: tEnum, limit: toFirst, words: []string{"static", "dynamic"},
			ptr: func(c *Config) any { return &c.Sandbox.Mode }},
		{name: "sandbox.untrusted", typ: tBool, limit: toTrue, ptr: func(c *Config) any { return &c.Sandbox.Untrusted }},
		{name: "sandbox.gate", typ: tEnum, words: []string{"auto", "gatefs", "notify"},
			ptr: func(c *Config) any { return &c.Sandbox.Gate }},
		{name: "sandbox.backend", typ: tEnum, host: true, words: []string{"auto", "native", "helper", "bwrap", "landlock",
			"vm", "devcontainer"},
			ptr: func(c *Config) any { return &c.Sandbox.Backend }},
		{name: "sandbox.fallback_on_unavailable", typ: tEnum, limit: toFirst, host: true, words: []string{"block", "warn",
			"allow"}, ptr: func(c *Config) any { return &c.Sandbox.FallbackOnUnavailable }},
		{name: "sandbox.debug", typ: tBool, limit: toFalse, ptr: func(c *Config) any { return &c.Sandbox.Debug }},
		{name: "sandbox.timeout", typ: tDuration, limit: toLess, ptr: func(c *Config) any { return &c.Sandbox.Timeout }},
		{name: "sandbox.non_root_user", typ: tBool, limit: toTrue,
			ptr: func(c *Config) any { return &c.Sandbox.NonRootUser }},
		{name: "sandbox.strict", typ: tBool, limit: toTrue, ptr: func(c *Config) any { return &c.Sandbox.Strict }},
		{name: "sandbox.prompt", typ: tEnum, limit: toFirst, host: true, words: []string{"deny", "tty", "socket", "auto",
			"allow"}, ptr: func(c *Config) any { return &c.Sandbox.Prompt }},
		{name: "sandbox.prompt_timeout", typ: tDuration, limit: toLess,
			ptr: func(c *Config) any { return &c.Sandbox.PromptTimeout }},
		{name: "sandbox.prompt_command", typ: tText, host: true,
			ptr: func(c *Config) any { return &c.Sandbox.PromptCommand }},
		{name: "sandbox.programs", typ: tPaths, host: true, ptr: func(c *Config) any { return &c.Sandbox.Programs }},
		{name: "sandbox.questions", typ: tInt, limit: toLess, ptr: func(c *Config) any { return &c.Sandbox.Questions }},
		{name: "sandbox.stat", typ: tEnum, limit: toFirst, words: []string{"ask", "type-only"},
			ptr: func(c *Config) any { return &c.Sandbox.Stat }},
		{name: "sandbox.new_session", typ: tBool, limit: toTrue, ptr: func(c *Config) any { return &c.Sandbox.NewSession }},
		{name: "sandbox.share_pid", typ: tBool, limit: toFalse, ptr: func(c *Config) any { return &c.Sandbox.SharePID }},
		{name: "sandbox.hostname", typ: tName, ptr: func(c *Config) any { return &c.Sandbox.Hostname }},
		{name: "sandbox.workdir", typ: tPath, ptr: func(c *Config) any { return &c.Sandbox.Workdir }},
		{name: "sandbox.workdir_at", typ: tPath, host: true, ptr: func(c *Config) any { return &c.Sandbox.WorkdirAt }},

		{name: "fs.read_only", typ: tPaths, limit: bySubset, ptr: func(c *Config) any { return &c.FS.ReadOnly }},
		{name: "fs.writable", typ: tPaths, limit: bySubset, viaProfile: true,
			ptr: func(c *Config) any { return &c.FS.Writable }},
		{name: "fs.overlay", typ: tPaths, limit: bySubset, viaProfile: true,
			ptr: func(c *Config) any { return &c.FS.Overlay }},
		{name: "fs.tmpfs", typ: tPaths, limit: bySubset, viaProfile: true, ptr: func(c *Config) any { return &c.FS.Tmpfs }},
		{name: "fs.hidden", typ: tPatterns, limit: byAdding, ptr: func(c *Config) any { return &c.FS.Hidden }},
		{name: "fs.secrets", typ: tPatterns, limit: byAdding, ptr: func(c *Config) any { return &c.FS.Secrets }},
		{name: "fs.ask", typ: tPatterns, limit: byAdding, ptr: func(c *Config) any { return &c.FS.Ask }},
		{name: "fs.reveal", typ: tPaths, limit: bySubset, host: true, ptr: func(c *Config) any { return &c.FS.Reveal }},
		{name: "fs.caches", typ: tEnum, limit: toFirst, words: cachesWords(), viaProfile: true,
			ptr: func(c *Config) any { return &c.FS.Caches }},
		{name: "fs.shell_files", typ: tEnum, limit: toFirst, host: true, words: []string{"hide", "ask", "show"},
			ptr: func(c *Config) any { return &c.FS.ShellFiles }},
		{name: "fs.no_sym_follow", typ: tBool, limit: toTrue, ptr: func(c *Config) any { return &c.FS.NoSymFollow }},
		{name: "fs.made_repositories", typ: tEnum, limit: toFirst, words: []string{"neutralise", "list"},
			ptr: func(c *Config) any { return &c.FS.MadeRepositories }},
		{name: "fs.tmp_size", typ: tSize, limit: toLess, ptr: func(c *Config) any { return &c.FS.TmpSize }},

		{name: "network.allow", typ: tBool, limit: toFalse, viaProfile: true, closes: true,
			ptr: func(c *Config) any { return &c.Network.Allow }},
		{name: "network.hosts", typ: tHosts, limit: bySubset, viaProfile: true,
			ptr: func(c *Config) any { return &c.Network.Hosts }},
		{name: "network.publish", typ: tPublish, limit: bySubset, ptr: func(c *Config) any { return &c.Network.Publish }},
		{name: "network.host_ports", typ: tPorts, limit: bySubset, ptr: func(c *Config) any { return &c.Network.HostPorts }},
		{name: "network.mode", typ: tEnum, limit: toFirst, asks: true,
			words: []string{"none", "auto", "slirp4netns", "pasta", "veth"},
			ptr:   func(c *Config) any { return &c.Network.Mode }},
		{name: "network.loopback", typ: tBool, limit: toFalse, ptr: func(c *Config) any { return &c.Network.Loopback }},
		{name: "network.with", typ: tNames, limit: bySubset, host: true,
			ptr: func(c *Config) any { return &c.Network.With }},
		// never: a credential of one goes that way alone
		{name: "network.endpoints", typ: tNames, host: true,
			ptr: func(c *Config) any { return &c.Network.Endpoints }},
		{name: "network.tls", typ: tEnum, limit: toFirst, words: []string{"sni", "none"},
			ptr: func(c *Config) any { return &c.Network.TLS }},
		{name: "network.labelled", typ: tEnum, limit: toFirst, words: []string{"cut", "hold"},
			ptr: func(c *Config) any { return &c.Network.Labelled }},

		{name: "limits.memory", typ: tSize, limit: toLess, ptr: func(c *Config) any { return &c.Limits.Memory }},
		{name: "limits.memory_high", typ: tSize, limit: toLess, ptr: func(c *Config) any { return &c.Limits.MemoryHigh }},
		{name: "limits.pids", typ: tInt, limit: toLess, ptr: func(c *Config) any { return &c.Limits.Pids }},
		{name: "limits.cpu", typ: tCPU, limit: toLess, ptr: func(c *Config) any { return &c.Limits.CPU }},
		{name: "limits.io", typ: tText, ptr: func(c *Config) any { return &c.Limits.IO }},

		{name: "env.clear", typ: tBool, limit: toTrue, ptr: func(c *Config) any { return &c.Env.Clear }},
		{name: "env.pass", typ: tGlobs, limit: bySubset, ptr: func(c *Config) any { return &c.Env.Pass }},
		{name: "env.set", typ: tMap, ptr: func(c *Config) any { return &c.Env.Set }},
		{name: "env.deny", typ: tGlobs, limit: byAdding, ptr: func(c *Config) any { return &c.Env.Deny }},

		{name: "features.nested", typ: tBool, limit: toFalse, closes: true, // an agent's profile may have it
			ptr: func(c *Config) any { return &c.Features.Nested }},
		{name: "features.containers", typ: tBool, limit: toFalse, ptr: func(c *Config) any { return &c.Features.Containers }},
		{name: "features.containers_shared", typ: tBool, limit: toFalse,
			ptr: func(c *Config) any { return &c.Features.ContainersShared }},
		{name: "features.vm", typ: tBool, limit: toFalse, ptr: func(c *Config) any { return &c.Features.VM }},
		{name: "features.kvm", typ: tBool, limit: toFalse, ptr: func(c *Config) any { return &c.Features.KVM }},
		{name: "features.nix", typ: tBool, limit: toFalse, closes: true, // it is found by itself
			ptr: func(c *Config) any { return &c.Features.Nix }},
		{name: "features.ssh_agent", typ: tBool, limit: toFalse, ptr: func(c *Config) any { return &c.Features.SSHAgent }},
		{name: "features.gpg_agent", typ: tBool, limit: toFalse, ptr: func(c *Config) any { return &c.Features.GPGAgent }},
		{name: "features.wayland", typ: tBool, limit: toFalse, ptr: func(c *Config) any { return &c.Features.Wayland }},
		{name: "features.x11", typ: tBool, limit: toFalse, ptr: func(c *Config) any { return &c.Features.X11 }},
		{name: "features.x11_server", typ: tPath, host: true, ptr: func(c *Config) any { return &c.Features.X11Server }},
		{name: "features.dbus", typ: tBool, limit: toFalse, ptr: func(c *Config) any { return &c.Features.DBus }},
		{name: "features.sockets", typ: tPaths, limit: bySubset, ptr: func(c *Config) any { return &c.Features.Sockets }},
		{name: "features.stores", typ: tStores, limit: bySubset, ptr: func(c *Config) any { return &c.Features.Stores }},

		{name: "vm.kernel", typ: tPath, host: true, ptr: func(c *Config) any { return &c.VM.Kernel }},
		{name: "vm.accel", typ: tEnum, host: true, words: []string{"auto", "kvm", "emulation"},
			ptr: func(c *Config) any { return &c.VM.Accel }},
		{name: "vm.machine", typ: tEnum, host: true, words: []string{"auto", "pc", "microvm"},
			ptr: func(c *Config) any { return &c.VM.Machine }},

		{name: "agents.auto", typ: tBool, limit: toFalse, host: true, ptr: func(c *Config) any { return &c.Agents.Auto }},
		{name: "agents.login", typ: tNames, limit: bySubset, host: true,
			ptr: func(c *Config) any { return &c.Agents.Login }},
		{name: "agents.hide_login", typ: tNames, limit: byAdding, ptr: func(c *Config) any { return &c.Agents.HideLogin }},

		{name: "bwrap.enforce", typ: tBool, limit: toTrue, host: true,
			ptr: func(c *Config) any { return &c.Bwrap.Enforce }},
		{name: "bwrap.ask", typ: tBool, limit: toFalse, host: true, ptr: func(c *Config) any { return &c.Bwrap.Ask }},

		{name: "audit.forward", typ: tEnum, host: true, words: []string{"none", "syslog", "journald"},
			ptr: func(c *Config) any { return &c.Audit.Forward }},
	}
}

func findKey(rows []key, name string) *key {
	for i := range rows {
		if rows[i].name == name {
			return &rows[i]
		}
	}
	return nil
}

// Keys lists every configuration key, for help texts and completion.
func Keys() []string {
	rows := keyTable()
	names := make([]string, len(rows))
	for i, k := range rows {
		names[i] = k.name
	}
	return names
}

// get returns the plain value behind the row's pointer.
func (k *key) get(c *Config) any {
	switch p := k.ptr(c).(type) {
	case *bool:
		return *p
	case *string:
		return *p
	case *int:
		return *p
	case *time.Duration:
		return *p
	case *[]string:
		return *p
	case *[]int:
		return *p
	case *map[string]string:
		return *p
	}
	panic("BUG(sbx): configuration key " + k.name + " has a type without a case")
}

func (k *key) put(c *Config, v any) {
	switch p := k.ptr(c).(type) {
	case *bool:
		*p = v.(bool)
	case *string:
		*p = v.(string)
	case *int:
		*p = v.(int)
	case *time.Duration:
		*p = v.(time.Duration)
	case *[]string:
		*p = v.([]string)
	case *[]int:
		*p = v.([]int)
	case *map[string]string:
		*p = v.(map[string]string)
	}
}

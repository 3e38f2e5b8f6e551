package policy

import "time"

// Config is the effective configuration. Paths are absolute; a path in a mount list may carry the optional mark (see
// pathname.SplitOptional). In lists nil means absent, so that the profile decides, and an empty list means none.
type Config struct {
	Sandbox  Sandbox
	FS       FS
	Network  Network
	Limits   Limits
	Env      Env
	Features Features
	Agents   Agents
	Bwrap    Bwrap
	VM       VM
	Audit    Audit
	Profiles map[string]Profile // the user's own, as written
	Servers  map[string]Server  // by name
	// Credentials are those that a run can be granted, by name
	Credentials map[string]Credential
	Endpoints   map[string]Endpoint
	Tools       map[string]Tool
}

// Sandbox is section [sandbox].
type Sandbox struct {
	Enabled               bool
	Profile               string
	Mode                  string // dynamic | static
	Gate                  string // auto | gatefs | notify
	Untrusted             bool
	Backend               string // auto | native | helper | bwrap | landlock | vm | devcontainer
	FallbackOnUnavailable string // block | warn | allow
	Debug                 bool
	Timeout               time.Duration // 0: none
	NonRootUser           bool
	Strict                bool
	Prompt                string // auto | tty | socket | deny | allow
	PromptTimeout         time.Duration
	PromptCommand         string
	Programs              []string // of the user's own that may be started outside
	Questions             int      // open questions at a time
	Stat                  string   // ask | type-only
	NewSession            bool
	SharePID              bool
	Hostname              string
	Workdir               string
	WorkdirAt             string // where the project is inside; "" for its own path
}

// FS is section [fs].
type FS struct {
	ReadOnly    []string // added to what the profile lets be read
	Writable    []string // replaces the profile's
	Overlay     []string // replaces the profile's
	Tmpfs       []string // replaces the profile's
	Hidden      []string // patterns, added to the profile's
	Secrets     []string // patterns, added to the built-in list
	Ask         []string // patterns, added to the profile's
	Reveal      []string // secret files that may be asked about
	Caches      string   // overlay | rw | ro
	ShellFiles  string   // hide | ask | show: what shells read when they start
	NoSymFollow bool
	TmpSize     string
	// MadeRepositories says what becomes of repositories that a session made: list | neutralise
	MadeRepositories string
}

// Network is section [network].
type Network struct {
	Allow     bool
	Hosts     []string // nil: all that Allow says; empty: none
	Publish   []string
	HostPorts []int
	Mode      string   // auto | none | slirp4netns | pasta | veth
	Loopback  bool     // 127.0.0.1 and ::1 inside; without them there is no network either
	TLS       string   // none | sni
	Labelled  string   // hold | cut: open connections, when the session has read what they may not hear of
	With      []string // names of credentials
	Endpoints []string // names of endpoints
}

// Limits is section [limits].
type Limits struct {
	Memory, MemoryHigh string // see amount.Parse
	Pids               int
	CPU                string // see amount.ParseCPU
	IO                 string
}

// Env is section [env].
type Env struct {
	Clear      bool     // only what is named is passed
	Pass, Deny []string // names with * as wildcard
	Set        map[string]string
}

// Audit is section [audit].
type Audit struct {
	Forward string // none | syslog | journald: a copy of every record for the system's log
}

// Bwrap is section [bwrap]: sbx in bubblewrap's place.
type Bwrap struct {
	Enforce bool // its own secrets and guard hold under the words
	Ask     bool // what the words hide is asked about
}

// VM is section [vm]: the virtual machine of the backend vm.
type VM struct {
	Kernel  string // "" for the host's
	Accel   string // auto | kvm | emulation
	Machine string // auto | pc | microvm
}

// Agents is section [agents].
type Agents struct {
	Auto bool // an agent's profile is found by its program's name
	// profiles whose agent is shown its own login, and those of which nobody is asked
	Login, HideLogin []string
}

// Features is section [features]: doors that stay shut unless asked for.
type Features struct {
	Nested, Containers, ContainersShared, VM, KVM, Nix, SSHAgent, GPGAgent, Wayland, X11, DBus bool
	// the socket of one that shows nothing else
	X11Server string
	Sockets   []string
	Stores    []string // see pathname.ParseStore
}

// defaults is the configuration without any file.
func defaults() Config {
	return Config{
		Sandbox: Sandbox{
			Enabled: true, Profile: "moderate", Mode: "dynamic", Gate: "auto", Backend: "auto",
			FallbackOnUnavailable: "block", Debug: true,
			NonRootUser: true, Prompt: "auto", PromptTimeout: 5 * time.Minute, Questions: 32, Stat: "ask",
		},
		FS:      FS{Caches: CachesKept, ShellFiles: "ask", TmpSize: "1G", MadeRepositories: "list"},
		Network: Network{Mode: "auto", Loopback: true, TLS: "none", Labelled: "hold"},
		Audit:   Audit{Forward: "none"},
		VM:      VM{Accel: "auto", Machine: "auto"},
		Limits:  Limits{Memory: "75%", Pids: 4096},
		Env: Env{Pass: []string{"LANG", "LANGUAGE", "LC_*", "TERM", "COLORTERM", "TZ", "HOME", "USER", "LOGNAME", "SHELL",
			"PATH", "EDITOR", "PAGER",
			"NO_COLOR", "CLICOLOR*", "COLUMNS", "LINES"}},
	}
}

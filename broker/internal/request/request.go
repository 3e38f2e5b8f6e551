package request

import (
	"strings"
	"time"

	"sbx.example/sbx/broker/internal/option"
	"sbx.example/sbx/broker/internal/planner"
	"sbx.example/sbx/broker/internal/resources"
)

// pathOption is one --ro, --rw, … as it was typed.
type pathOption struct {
	Path string
	Mode planner.Mode
	Flag string
	Make bool // a directory of the host's that is made if it is missing
}

// Expand is the path that is meant, and whether it may be missing.
func (o pathOption) Expand(home, cwd, project string) (p string, optional bool, err error) {
	name, optional := strings.CutSuffix(o.Path, "?")
	p, err = option.ExpandPath(name, home, cwd, project)
	return p, optional, err
}

// Request is what the command line asks for; a nil pointer or empty string means that it does not say.
type Request struct {
	Profile, Mode, gate, Workdir, Hostname, Name, caches, shellFiles      string
	Agent                                                                 string   // the name of a profile
	Server                                                                string   // the name of an MCP server
	tool                                                                  string   // the name of a tool, see ForTool
	beside, unread, onlyReads                                             bool     // see Narrowed, Unread, OnlyReads
	linkable                                                              []string // see ForTool
	prompt, promptCommand                                                 string
	Learn, Nix                                                            string
	Backend                                                               string // "" for that of the settings
	promptTimeout                                                         time.Duration
	Paths                                                                 []pathOption
	Hide, Secret                                                          []string
	SSHKeys, BusNames, Only                                               []string
	env, envPass, sockets                                                 []string
	sshAgent, gpgAgent, wayland, x11, dbus, vm, kvm                       bool
	nested, containers, containersShared                                  bool
	AllowNetwork                                                          bool
	AllowHosts, publish, hostPorts                                        []string
	with, endpoints                                                       []string
	Record                                                                string // a file, for what endpoints are asked
	net                                                                   string
	Timeout, TimeOffset                                                   time.Duration
	workdirAt, tmpSize, memory, memoryHigh, cpu, io                       string
	pids                                                                  int
	Rules                                                                 []*resources.Rule
	AsPID1, Ephemeral, Keep                                               bool
	ExitBlocked, envClear, noDebug, noLoopback, Strict, NoSandbox, NoSuid bool
	DryRun, JSON, Verbose, Quiet                                          bool
	UnlessSandboxed                                                       bool
	Settled                                                               bool // sbx env has said by what sbx goes
	Seatbelt                                                              bool // --backend seatbelt
	Detach, untrusted                                                     bool
	Hooks                                                                 Hooks
	Argv                                                                  []string
}

// Parse reads options of sbx run and returns the program's command line.
func (r *Request) Parse(args []string) ([]string, error) {
	c := Row()
	c.Rows = r.Options()
	words, err := c.Parse(args)
	if err == nil && r.Seatbelt { // it is planned here, and run by nobody who reads options so
		err = option.Wrong("--backend seatbelt works with sbx run on macOS, and with --dry-run", "leave the option out")
	}
	if err == nil && r.UnlessSandboxed {
		err = option.Wrong("--unless-sandboxed works with sbx run and sbx mcp in the foreground", "leave one of the two out")
	}
	return words, err
}

// Row is what sbx run is called and takes; a request has its options.
func Row() option.Command {
	return option.Command{Name: "run", Args: "[OPTIONS] [--] CMD [ARG...]", Help: "run CMD in a new sandbox",
		Text: "Runs CMD (default: $SHELL) in a new sandbox and exits with its status.", Leading: true,
		Words: []option.Word{{From: option.Program}}, Known: known()}
}

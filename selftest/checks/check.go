//go:build linux

// Package checks holds the acceptance checks of sbx as plain data, judges their outcomes, and runs them with the built
// binaries. It must never pass a check whose negative control did not show that the same act succeeds with the layer
// switched off. The command `sbx selftest` calls it, and so do the tests of the product.
package checks

// Groups, in the order of the report.
const (
	Process    = "process"
	Filesystem = "filesystem"
	Secrets    = "secrets"
	Network    = "network"
	Seccomp    = "seccomp"
	Privileges = "privileges"
	Debug      = "debug"
	Terminal   = "terminal"
	Lifecycle  = "lifecycle"
	Resources  = "resources"
	Containers = "containers"
	VM         = "vm"
	Nix        = "nix"
	Grants     = "grants"
	Only       = "only"
)

// Groups lists every group once.
func Groups() []string {
	return []string{Process, Filesystem, Secrets, Network, Seccomp, Privileges, Debug, Terminal, Lifecycle, Resources,
		Containers, VM, Nix, Grants, Only}
}

// Check is one forbidden act: what is tried, what must happen, and how to show that the act could succeed.
// Strings of Args, Options, Setup, During and After may hold placeholders such as {HOME}; see lab.go.
type Check struct {
	ID      string
	Group   string
	Title   string
	Tries   string
	Must    string
	Layer   string
	Act     string // of the probe
	Args    []string
	Setup   []Setup
	Want    []string // acceptable errnos and outcomes; "OK" means that success is acceptable, too
	Control Control
	Options []string // further options of sbx run
	Needs   []string // facts of the host without which the check is skipped
	During  []Step   // what the host does while the act waits
	After   []Verify // what the host must look like afterwards; if set, it alone says whether the act succeeded
	Dir     string   // where sbx is started; empty means the project
	Alone   bool     // needs a sandbox of its own
	Config  string   // the user's config.toml, in the sandbox of the check and of its control
	Kill    bool     // the broker is killed while the act runs
}

// Control says how the same act is made to succeed. The first way that is possible is taken: Off, Options, Host.
// None of them set: None must give the reason.
type Control struct {
	Off     []string // layers for the hidden test option
	Options []string // other options of sbx run, instead of Check.Options
	Host    bool     // run the act on the host, without a sandbox
	NS      string   // with Host: in a namespace of its own: user, net, unmapped
	Args    []string // with Host: harmless or adapted arguments; nil means Check.Args
	Drop    bool     // with Host: as an ordinary user even if root runs the selftest
	// number of calls that must have been reached (any answer but a filter's) if the act cannot succeed at all
	Reach int
	Needs []string // facts of the host without which there is no control
	None  string
}

// Setup is something the host must have before the run.
type Setup struct {
	Kind string // file, dir, link, hardlink, socket, abstract, shm, agent, nixdaemon
	Path string
	Text string // content, or the target of a link
}

// Step is what the host does when the act has written its marker {READY}.
type Step struct {
	Kind     string // rename, dial, touch
	From, To string
}

// Verify is one condition on the host after the run.
type Verify struct {
	Kind string // same, absent, nosuid, noprocess, quiet
	Path string
}

// Ref is an attack of the corpus that another test covers.
type Ref struct {
	ID     string
	Test   string
	Reason string
}

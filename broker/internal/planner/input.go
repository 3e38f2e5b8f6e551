package planner

import (
	"fmt"
	"slices"
	"strings"

	"sbx.example/sbx/broker/internal/guard"
	"sbx.example/sbx/broker/internal/host"
	"sbx.example/sbx/broker/internal/secrets"
	"sbx.example/sbx/broker/plan"
)

// FS is the file system that is planned for. host.FS is the real one.
type FS interface {
	Lstat(path string) (host.Stat, error)
	Readlink(path string) (string, error)
	Access(path string, mode uint32) bool
	Exchanged() string // see host.Cache
	secrets.FS
}

// Mode is what a grant gives.
type Mode uint8

// The modes, weakest first.
const (
	None    Mode = iota
	Read         // the host's tree, read-only
	Write        // the host's tree, read-write
	Overlay      // the host's tree below a writable layer of the session's own
	Scratch      // an empty writable tmpfs
)

func (m Mode) String() string {
	return [...]string{"none", "ro", "rw", "overlay", "tmpfs"}[m]
}

// How the reasons of grants begin that show what came with the system, or from a registry.
const (
	ProfileWhy = "profile "
	CacheWhy   = "cache"
)

// NativeWhy is the reason of a mount of a directory of a judged tree on what is served there: what changes it is
// carried out as well.
const NativeWhy = "guarded, native"

// SocketWhy is the reason of a mount that covers a socket of the host's. It may be moved and removed all the same.
const SocketWhy = "socket of the host"

// Grant makes a path and all below it exist inside.
type Grant struct {
	Path     string // absolute; links in it are followed once, at planning
	Mode     Mode
	NoExec   bool
	Optional bool   // a missing path is left out instead of refused
	Socket   bool   // the path is a socket
	Source   string // name in the session's folder of a socket that the broker makes there; it appears at Path
	Own      bool   // an empty place of the session's own stands there, whatever the host has
	listed   bool   // an entry of a granted directory that is mounted by itself: it may vanish or be replaced meanwhile
	Explicit bool   // asked for by a person for this run, not by a profile
	Ruled    bool   // a rule of the policy's, as answers leave them, says so
	Reveal   bool   // the path is a secret file, and a rule shows it
	Closes   bool   // a rule denies to write there: what is shown is read, and nothing is shown for it
	// of a cache: what of it outlives the session in the project's layer, that layer, "" while there is none, and where
	// programs are installed
	Keep       []string
	Layer, Bin string
	Why        string // where it comes from: "profile moderate", "--rw", "~/.config/sbx/config.toml:4"
}

// Keeps says whether what a session writes at rel, a path in a cache, outlives it.
func (g *Grant) Keeps(rel string) bool {
	name, _, _ := strings.Cut(rel, "/")
	return slices.Contains(g.Keep, ".") || slices.Contains(g.Keep, name)
}

// Hide makes a path not exist inside, whatever is granted around it.
type Hide struct {
	Path   string // absolute
	Secret bool   // also refuses grants at or below it
	Ask    bool   // it is not mounted, but where the broker serves the root it exists and asks
	Why    string
}

// Label is one of a rule's, with the place that the rule is about and where the rule stands.
type Label struct{ Name, Place, Why string }

// Carried are the labels that the session carries from the start, each with its place.
func (in *Input) Carried() map[string]string {
	out := map[string]string{}
	for _, l := range in.Labels {
		out[l.Name] = l.Place
	}
	return out
}

// ShowsSecrets says whether a secret file is shown, or can be, that is not the agent's own.
func (in *Input) ShowsSecrets() bool {
	return slices.ContainsFunc(in.Reveals, func(p string) bool { return !slices.Contains(in.OwnSecrets, p) }) ||
		slices.ContainsFunc(in.Grants, func(g Grant) bool { return g.Reveal && !slices.Contains(in.OwnSecrets, g.Path) })
}

// Copy is a file of the host's that is shown as it was at the start, or without parts of it. It may lie in a directory
// that is hidden: nothing else of that is shown for it.
type Copy struct {
	Path string
	Text plan.Text // under its name in the session's folder
	// by a link to it: what serves the root shows a file with the name of a secret nowhere
	Linked bool
	// over the host's, where that is shown
	Over bool
	// of a decoy: what is in no other file, and the rule that puts it there
	Mark, Why string
}

// Folder is a directory of sbx's own that stands in a place of the sandbox's own. It is written, and nothing in it is
// run.
type Folder struct{ Path, Source, Why string }

// Tool is a name in /tool: a program of sbx's stands there, which has the broker run what is meant.
type Tool struct {
	Path   string
	Client string // that program, canonical
	Why    string
}

// Input is everything that a plan depends on.
type Input struct {
	Session    string
	SessionDir string // host folder whose overlay/ holds the writable layers
	Hostname   string
	SameName   bool     // the host's own stays: none can be set here
	Argv       []string // Argv[0] is looked up in the PATH of Env
	Dir        string   // canonical working directory, "" for none
	Env        []string
	Grants     []Grant
	Hides      []Hide
	// single secret files that the gate may show, canonical and in no tree that is shown: they ask, and nothing beside
	// them exists
	Reveals []string
	// those of them that the profile of an agent, a tool or an MCP server shows: the hosts beside them are meant for them
	OwnSecrets []string
	// labels that the session carries from the start: what they are about is shown without a look at who reads it
	Labels []Label
	// where programs of a session beside this one can make links
	LinkableBeside []string
	Project        string // canonical, "" when nothing is the project
	ProjectAt      string // where it is inside; "" for the same path
	GitDir         string // canonical: the repository of a linked worktree, granted and guarded like the project's own
	Limits         []plan.Limit
	// see plan.Process
	InotifyInstances, InotifyWatches int

	Controls    []plan.Control
	TmpSize     int64 // bytes of each tmpfs
	Stdio       [3]plan.Stdio
	TTY         bool
	AsPID1      bool
	Idle        bool        // Argv is not started: the sandbox stands for other programs
	NoLayers    string      // why there are no writable layers, "" if there are
	Direct      bool        // another program builds the sandbox: sbx-helper, where there are no user namespaces
	Bubblewrap  *Bubblewrap // it is bubblewrap; nil: it is not
	InPlace     bool        // there are none, and nothing is mounted: Landlock and the filter alone hold
	Placed      bool        // nothing is mounted: rules about paths hold (macOS), see BuildPlaced
	Asks        bool        // somebody wanted to be asked about what is not granted
	MapRoot     bool        // uid 0 inside
	ShareNet    bool
	JoinNet     bool // the network is made before the sandbox; the session's etc/ holds the files that name its resolver
	NoLoopback  bool
	OwnNames    bool // without a network: resolv.conf and hosts are the sandbox's own
	ShareIPC    bool
	TimeOffset  int64
	KVM         bool     // show /dev/kvm
	Machine     *Machine // the program runs in a virtual machine; nil: it does not
	Nested      bool     // programs make user namespaces inside
	Containers  *Containers
	NoSymFollow bool
	Gate        bool // the broker serves the root, so that what is not granted can be asked about
	Agent       bool // what is not granted can be mounted later on a root that is not served; Gate comes with one anyway
	NoLandlock  bool
	Only        *Only            // nil: what is visible can be executed
	Own         *secrets.Ledger  // what programs in the sandbox have made in the project; may be nil
	Turns       string           // the file by which sessions take turns in moving directories; "" for none
	Copies      []Copy           // see there
	Folders     []Folder         // see there
	Tools       []Tool           // see there
	Referred    []guard.Referred // see Refer
	Trees       []string         // directories that are guarded whatever their own name is
	Outside     []string         // what Refer was given
	Unread      []string         // directories in trees that cannot be looked through, and do not exist inside
	refused     *Refusal         // see unreadable
	Masked      []Masked         // see Refer
	Configs     []string         // configurations of repositories that are shown, where a credential may appear
	NoGuard     bool             // test builds only: the project is bound as it is
	NoSecrets   bool             // test builds only: no secrets are looked for in trees that are read
	// canonical: mounted writable by a test that takes the mounts' line away, not so for Landlock
	Ungranted []string
	Losses    []Loss // what was lost before planning began
	Seccomp   plan.Seccomp
	Judging   *plan.Seccomp // the filter of a plan in which the broker carries out what changes a tree; nil: none can
	// and one with which it reads there as well; in place only
	JudgingAll *plan.Seccomp
	Facts      host.Facts
	FS         FS
}

// Loss is something that was asked for, or is part of sbx's promise, and cannot be had here.
type Loss struct {
	What string `json:"what"` // "landlock", "secret .env in a writable project", …
	Why  string `json:"why"`
	Fix  string `json:"fix"` // what to do about it; may be empty
	// Price marks what a switch that somebody gave takes away everywhere, or what is to be known though nothing is lost:
	// it is said each time, and is no reason not to run.
	Price bool `json:"price,omitempty"`
	// Always marks what no run on this system has, whatever it asks for.
	Always bool `json:"-"`
}

func (l Loss) String() string {
	s := l.What + ": " + l.Why
	if l.Fix != "" {
		s += " (" + l.Fix + ")"
	}
	return s
}

// Refusal is a request that is not carried out. Hint says what to do instead.
type Refusal struct {
	What string
	Hint string
	Err  error
}

func (r *Refusal) Error() string {
	if r.Err != nil {
		return fmt.Sprintf("%s: %v", r.What, r.Err)
	}
	return r.What
}

func (r *Refusal) Unwrap() error { return r.Err }

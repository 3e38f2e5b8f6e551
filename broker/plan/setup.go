package plan

import setup "sbx.example/sbx/shared/plan"

// What of a plan takes privileges.
type (
	Setup      = setup.Setup
	Namespaces = setup.Namespaces
	Mount      = setup.Mount
	Kind       = setup.Kind
	Access     = setup.Access
	Stdio      = setup.Stdio
	Text       = setup.Text
)

// The two accesses.
const (
	ReadOnly  = setup.ReadOnly
	ReadWrite = setup.ReadWrite
)

// The mount operations.
const (
	Tmpfs   = setup.Tmpfs
	Dir     = setup.Dir
	File    = setup.File
	Symlink = setup.Symlink
	Bind    = setup.Bind
	Overlay = setup.Overlay
	Proc    = setup.Proc
	Devpts  = setup.Devpts
	Mqueue  = setup.Mqueue
	Protect = setup.Protect
	Judged  = setup.Judged
	Remount = setup.Remount
	Mask    = setup.Mask
	Fuse    = setup.Fuse
	Absent  = setup.Absent
)

// Those of a plan in bubblewrap's words, which sbx-helper knows nothing of.
const (
	DevBind    Kind = "dev-bind"    // Bind with its devices
	HostRoot   Kind = "host-root"   // all of the host's tree, below the root; Device with its devices
	ProcAll    Kind = "proc-all"    // Proc that shows every process
	Data       Kind = "data"        // a file of Mode that holds Source, which no directory has, bound to Target
	TmpOverlay Kind = "tmp-overlay" // Lower; what is written is gone at the end
	Copy       Kind = "copy"        // a file of Mode that holds Source
	// a mount point in a directory that a sandbox around this one serves: it shows it, and does not make it on the host
	PointDir  Kind = "point-dir"
	PointFile Kind = "point-file"
	Chmod     Kind = "chmod" // give what Target is the Mode
	// What a tmpfs or a file of data hides, and a person may show. The server stands where nobody walks, before the rest.
	AskServer Kind = "ask-server" // a FUSE file system with one name for each of the others, in their order
	AskDir    Kind = "ask-dir"    // cover the tmpfs at Target with an overlay of it on what the server shows of Lower
	AskFile   Kind = "ask-file"   // Data for who has no yes to the file Lower, served
)

// The kinds of standard descriptor.
const (
	Inherit = setup.Inherit
	Reopen  = setup.Reopen
	Pty     = setup.Pty
	Null    = setup.Null
)

// MaxFuse bounds the FUSE file systems of a plan.
const MaxFuse = setup.MaxFuse

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

	DevBind    = setup.DevBind
	HostRoot   = setup.HostRoot
	ProcAll    = setup.ProcAll
	Data       = setup.Data
	TmpOverlay = setup.TmpOverlay
	Copy       = setup.Copy
	Chmod      = setup.Chmod
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

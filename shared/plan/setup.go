package plan

import (
	"fmt"
	"strings"
)

// Setup is what of a plan takes privileges: all that sbx-helper is asked for. What comes after process 1 has given them
// up, it does with its caller's rights, and what that is nobody has to check (see stage.Tail).
type Setup struct {
	Namespaces Namespaces `json:"namespaces"`
	Hostname   string     `json:"hostname"`
	Loopback   bool       `json:"loopback"` // bring lo up in the new network namespace
	Mounts     []Mount    `json:"mounts"`
	Stdio      [3]Stdio   `json:"stdio"`
}

// Namespaces says which namespaces are new (namespaces(7)). Mount and PID are always new.
type Namespaces struct {
	User   bool `json:"user"`
	Net    bool `json:"net"`
	IPC    bool `json:"ipc"`
	UTS    bool `json:"uts"`
	Cgroup bool `json:"cgroup"`
	Time   bool `json:"time"`
	// Net is not new: the caller made it before, below a user namespace of its own.
	JoinNet    bool  `json:"join_net,omitempty"`
	TimeOffset int64 `json:"time_offset,omitempty"` // seconds added to CLOCK_MONOTONIC and CLOCK_BOOTTIME
}

// Access of a mount.
type Access string

// The two accesses.
const (
	ReadOnly  Access = "ro"
	ReadWrite Access = "rw"
)

// Kind names a mount operation.
type Kind string

// The mount operations, in the words of mount(8).
const (
	Tmpfs   Kind = "tmpfs"   // a new tmpfs of Size bytes and Inodes inodes
	Dir     Kind = "dir"     // mkdir Target with Mode
	File    Kind = "file"    // an empty file, to be mounted on
	Symlink Kind = "symlink" // Source is the link's text
	Bind    Kind = "bind"    // Source, with everything mounted below it
	Overlay Kind = "overlay" // Lower, optional Upper and Work
	Proc    Kind = "proc"    // a proc of the new PID namespace
	Devpts  Kind = "devpts"  // a new instance
	Mqueue  Kind = "mqueue"
	Protect Kind = "protect" // bind Target on itself with the given Access
	// Cover Target with itself, read-only; what is covered is handed to the broker, which writes there for others.
	Judged  Kind = "judged"
	Remount Kind = "remount" // give the one mount at Target the given Access
	Mask    Kind = "mask"    // cover the file Target with the sandbox's own /dev/null
	Fuse    Kind = "fuse"    // a FUSE file system served by the broker over the next FdFuse
	Absent  Kind = "absent"  // a name of the gate that does not exist, whatever the host has there
)

// MaxFuse is how many FUSE file systems a plan has beside a served root.
const MaxFuse = 7

// Mount is one operation of the mount plan. Operations are carried out in order; Target is absolute
// as seen inside. Every new mount is nosuid; it is nodev unless Device is set. Paths are bytes as the kernel knows
// them: they need not be UTF-8.
type Mount struct {
	Kind   Kind     `json:"kind"`
	Target string   `json:"target"`
	Source string   `json:"source,omitempty"`
	Lower  []string `json:"lower,omitempty"` // overlay layers, topmost first
	Hide   []string `json:"hide,omitempty"`  // overlay: names below Target that do not exist, whatever the layers hold
	Files  []Text   `json:"files,omitempty"` // overlay: files that stand on top of the layers
	Upper  string   `json:"upper,omitempty"`
	Work   string   `json:"work,omitempty"`
	Access Access   `json:"access,omitempty"`
	// Dev and Ino are the source's identity when the plan was made (statx(2)); the set-up compares
	// them on the descriptor it mounts from. Both zero: not compared.
	Dev         uint64 `json:"dev,omitempty"`
	Ino         uint64 `json:"ino,omitempty"`
	Size        int64  `json:"size,omitempty"`   // bytes, tmpfs
	Inodes      int64  `json:"inodes,omitempty"` // tmpfs
	Mode        uint32 `json:"mode,omitempty"`   // dir, file, tmpfs
	Device      bool   `json:"device,omitempty"` // bind of one of the harmless device nodes
	NoExec      bool   `json:"no_exec,omitempty"`
	NoSymFollow bool   `json:"no_sym_follow,omitempty"` // MS_NOSYMFOLLOW, kernel 5.10
	NoUUID      bool   `json:"no_uuid,omitempty"`       // overlay: nothing marks Upper as used (uuid=null, kernel 6.6)
	Optional    bool   `json:"optional,omitempty"`      // a failure is not a fault (proc files that a kernel lacks)
	Why         string `json:"why,omitempty"`           // for people; no meaning to the interpreter
}

// Text is a file of the sandbox's own, which everybody can read: its name in a directory, and what is in it.
type Text struct {
	Name string `json:"name"`
	Text string `json:"text"`
}

// Stdio says what descriptor 0, 1 or 2 is inside.
type Stdio string

// The kinds of standard descriptor.
const (
	Inherit Stdio = "inherit" // the caller's pipe, file or null device
	Reopen  Stdio = "reopen"  // the caller's regular file, opened anew on a read-only mount
	Pty     Stdio = "pty"
	Null    Stdio = "null"
)

// Check reports the first thing in s that the interpreter must not be asked to do, whoever asks.
func (s *Setup) Check() error {
	switch {
	case len(s.Hostname) > 63 || strings.ContainsAny(s.Hostname, "\x00/\n"):
		return fmt.Errorf("host name %q", s.Hostname)
	case len(s.Mounts) == 0 || len(s.Mounts) > MaxMounts:
		return fmt.Errorf("%d mount operations", len(s.Mounts))
	}
	for i := range s.Mounts {
		if err := s.Mounts[i].validate(i == 0); err != nil {
			return fmt.Errorf("mount %d (%s %q): %w", i, s.Mounts[i].Kind, s.Mounts[i].Target, err)
		}
	}
	for i, kind := range s.Stdio {
		switch {
		case kind == Reopen && i != 0:
			return fmt.Errorf("descriptor %d cannot be reopened", i)
		case kind != Reopen && kind != Inherit && kind != Null && kind != Pty:
			return fmt.Errorf("descriptor %d is %q", i, kind)
		}
	}
	return nil
}

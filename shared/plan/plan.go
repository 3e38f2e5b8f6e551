package plan

// Version is the only format this package reads and writes.
const Version = 1

// Plan is everything that is to be done to build one sandbox and start its program.
// No field has a default: zero means zero.
type Plan struct {
	Version    int
	Session    string
	Namespaces Namespaces
	Identity   Identity
	Hostname   Bytes
	Loopback   bool  // bring lo up in the new network namespace
	Gate       *Gate `json:",omitempty"` // what the root shows, where the broker serves it
	Mounts     []Mount
	Limits     []Limit
	Controls   []Control `json:",omitempty"` // of the control group that process 1 is in before it begins
	Delegated  []string  `json:",omitempty"` // controllers of the control group that is mounted at CgroupPlace, which process 1 leaves for CgroupLeaf
	Landlock   *Landlock `json:",omitempty"`
	Seccomp    Seccomp
	Process    Process
	Stdio      [3]Stdio
	Fds        []FdRole // descriptors that the set-up hands to the broker, in this order
}

// Gate describes the root of the sandbox as a FUSE file system of the broker's (a skeleton): what is granted is mounted on it,
// and what is not waits for an answer at its first access. The first mount operation is then Fuse.
type Gate struct {
	Dirs []GateDir // by path, "/" first
}

// GateDir is one directory of the skeleton.
type GateDir struct {
	Path  Bytes
	Place bool       `json:",omitempty"` // something is mounted on it
	Ask   bool       `json:",omitempty"` // the host's names that are not listed here are there, and their first access waits
	List  bool       `json:",omitempty"` // the set-up lists it, so that the kernel knows its names before anybody looks for one
	Names []GateName `json:",omitempty"`
}

// GateName is a name in a directory of the skeleton: a file to mount on, a link, or a name that does not exist.
type GateName struct {
	Name   Bytes
	Kind   Kind   // File, Symlink or Absent
	Target Bytes  `json:",omitempty"` // of a link
	Access Access `json:",omitempty"` // of what is mounted on a file
}

// Namespaces says which namespaces are new (namespaces(7)). Mount and PID are always new.
type Namespaces struct {
	User, Net, IPC, UTS, Cgroup bool
	Time                        bool
	JoinNet                     bool  `json:",omitempty"` // Net is not new: the caller made it before, below a user namespace of its own
	TimeOffset                  int64 `json:",omitempty"` // seconds added to CLOCK_MONOTONIC and CLOCK_BOOTTIME
}

// Identity is the one uid and the one gid that exist inside (user_namespaces(7)), and with SubUIDs or SubGIDs the
// subordinate ids (subuid(5)) that namespaces made inside may map. Then the caller has the maps written, not the set-up.
type Identity struct {
	InsideUID, OutsideUID uint32
	InsideGID, OutsideGID uint32
	SubUIDs               []IDRange `json:",omitempty"`
	SubGIDs               []IDRange `json:",omitempty"`
}

// IDRange is Count ids from First on; they have the same numbers inside and outside.
type IDRange struct {
	First, Count uint32
}

// HasRanges says whether there are subordinate ids.
func (id *Identity) HasRanges() bool { return len(id.SubUIDs)+len(id.SubGIDs) > 0 }

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
	Remount Kind = "remount" // give the one mount at Target the given Access
	Mask    Kind = "mask"    // cover the file Target with the sandbox's own /dev/null
	Fuse    Kind = "fuse"    // a FUSE file system served by the broker over the next FdFuse
	Absent  Kind = "absent"  // a name of the gate that does not exist, whatever the host has there
)

// Mount is one operation of the mount plan. Operations are carried out in order; Target is absolute
// as seen inside. Every new mount is nosuid; it is nodev unless Device is set.
type Mount struct {
	Kind   Kind
	Target Bytes
	Source Bytes   `json:",omitempty"`
	Lower  []Bytes `json:",omitempty"` // overlay layers, topmost first
	Hide   []Bytes `json:",omitempty"` // overlay: names below Target that do not exist, whatever the layers hold
	Upper  Bytes   `json:",omitempty"`
	Work   Bytes   `json:",omitempty"`
	Access Access  `json:",omitempty"`
	// Dev and Ino are the source's identity when the plan was made (statx(2)); the set-up compares
	// them on the descriptor it mounts from. Both zero: not compared.
	Dev         uint64 `json:",omitempty"`
	Ino         uint64 `json:",omitempty"`
	Size        int64  `json:",omitempty"` // bytes, tmpfs
	Inodes      int64  `json:",omitempty"` // tmpfs
	Mode        uint32 `json:",omitempty"` // dir, file, tmpfs
	Device      bool   `json:",omitempty"` // bind of one of the harmless device nodes
	NoExec      bool   `json:",omitempty"`
	NoSymFollow bool   `json:",omitempty"` // MS_NOSYMFOLLOW, kernel 5.10
	Optional    bool   `json:",omitempty"` // a failure is not a fault (proc files that a kernel lacks)
	Why         string `json:",omitempty"` // for people; no meaning to the interpreter
}

// Limit is one resource limit (prlimit(2)); Resource is the kernel's number, the values its units.
type Limit struct {
	Resource   int
	Name       string
	Soft, Hard uint64
}

// Control is one limit of the session's control group (cgroup-v2): a file of the group and what the broker
// wrote to it. With any, the cgroup namespace begins at that group.
type Control struct {
	File, Value string
}

// Where a program inside has control groups of its own, if it has any, and the one below that which it is in itself.
const (
	CgroupPlace = "/sys/fs/cgroup"
	CgroupLeaf  = "init"
)

// Landlock is the second line below the mounts (landlock(7)): whatever is handled and not granted is
// refused, whatever the mounts say.
type Landlock struct {
	ABI       int
	HandledFS uint64
	Scoped    uint64 `json:",omitempty"` // ABI 6
	Rules     []LandlockRule
}

// LandlockRule grants Access below Path, as seen inside.
type LandlockRule struct {
	Path   Bytes
	Access uint64
}

// Insn is one instruction of classic BPF, struct sock_filter.
type Insn struct {
	Code   uint16
	Jt, Jf uint8
	K      uint32
}

// Seccomp is the filter that is loaded last. The helper loads it and never compiles it.
type Seccomp struct {
	Rules   string // name of the rule set it was compiled from, for people
	Program []Insn
	Notify  bool // hand the listener to the broker as FdSeccomp
}

// Process is the program and how it starts.
type Process struct {
	Path   Bytes // absolute inside
	Argv   []Bytes
	Env    []Bytes
	Dir    Bytes
	Umask  uint32
	TTY    bool // a pseudo-terminal of the sandbox's own is the controlling terminal
	AsPID1 bool // no reaper: the program is process 1
	Idle   bool `json:",omitempty"` // the program is not started: the sandbox stands for others that are started later
	OOMAdj int  // added to oom_score_adj, so that memory pressure ends the sandbox before its broker
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

// FdRole names a descriptor that the set-up sends to the broker.
type FdRole string

// The roles.
const (
	FdPty     FdRole = "pty"     // master of the sandbox's terminal
	FdSeccomp FdRole = "seccomp" // listener of seccomp_unotify(2)
	FdNetns   FdRole = "netns"
	FdUserNS  FdRole = "userns"  // for the agent
	FdMountNS FdRole = "mountns" // for the agent
	FdFuse    FdRole = "fuse"
)

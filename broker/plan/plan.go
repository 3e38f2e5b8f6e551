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
	// controllers of the control group that is mounted at CgroupPlace, which process 1 leaves for CgroupLeaf
	Delegated []string  `json:",omitempty"`
	Landlock  *Landlock `json:",omitempty"`
	Seccomp   Seccomp
	Process   Process
	Stdio     [3]Stdio
	Fds       []FdRole // descriptors that the set-up hands to the broker, in this order
}

// Judged says whether the tree at a path is covered by one that is read-only.
func (p *Plan) Judged(target string) bool {
	for i := range p.Mounts {
		if p.Mounts[i].Kind == Judged && p.Mounts[i].Target == target {
			return true
		}
	}
	return false
}

// Gate describes the root of the sandbox as a FUSE file system of the broker's (a skeleton): what is granted is mounted
// on it, and what is not waits for an answer at its first access. The first mount operation is then Fuse.
type Gate struct {
	Dirs []GateDir // by path, "/" first
}

// GateDir is one directory of the skeleton.
type GateDir struct {
	Path  Bytes
	Place bool `json:",omitempty"` // something is mounted on it
	// the host's names that are not listed here are there, and their first access waits
	Ask bool `json:",omitempty"`
	// the set-up lists it, so that the kernel knows its names before anybody looks for one
	List  bool       `json:",omitempty"`
	Names []GateName `json:",omitempty"`
}

// GateName is a name in a directory of the skeleton: a file to mount on, a link, or a name that does not exist.
type GateName struct {
	Name   Bytes
	Kind   Kind   // File, Symlink or Absent
	Target Bytes  `json:",omitempty"` // of a link
	Access Access `json:",omitempty"` // of what is mounted on a file
}

// Identity is the one uid and the one gid that exist inside (user_namespaces(7)), and with SubUIDs or SubGIDs the
// subordinate ids (subuid(5)) that namespaces made inside may map. Then the caller has the maps written, not the
// set-up.
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

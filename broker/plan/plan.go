package plan

// Version is the only format this package reads and writes.
const Version = 1

// Plan is everything that is to be done to build one sandbox and start its program.
// No field has a default: zero means zero.
type Plan struct {
	Version    int        `json:"version"`
	Session    string     `json:"session"`
	Namespaces Namespaces `json:"namespaces"`
	Identity   Identity   `json:"identity"`
	Hostname   Bytes      `json:"hostname"`
	Loopback   bool       `json:"loopback"`       // bring lo up in the new network namespace
	Gate       *Gate      `json:"gate,omitempty"` // what the root shows, where the broker serves it
	Mounts     []Mount    `json:"mounts"`
	Moved      *Moved     `json:"moved,omitempty"` // nil: every path is the host's
	Limits     []Limit    `json:"limits"`
	Controls   []Control  `json:"controls,omitempty"` // of the control group that process 1 is in before it begins
	// controllers of the control group that is mounted at CgroupPlace, which process 1 leaves for CgroupLeaf
	Delegated []string  `json:"delegated,omitempty"`
	Landlock  *Landlock `json:"landlock,omitempty"`
	Seccomp   Seccomp   `json:"seccomp"`
	Process   Process   `json:"process"`
	Stdio     [3]Stdio  `json:"stdio"`
	Fds       []FdRole  `json:"fds"` // descriptors that the set-up hands to the broker, in this order
	// how it is carried out, where it was asked for in bubblewrap's words; nil: as this package says elsewhere
	Bubblewrap *Bubblewrap `json:"bubblewrap,omitempty"`
	// how it is carried out where there are no namespaces; nil: as this package says elsewhere
	InPlace *InPlace `json:"in_place,omitempty"`
	// bubblewrap's options, where that makes what Mounts and Namespaces say; process 1 looks whether it has
	Bwrap []Bytes `json:"bwrap,omitempty"`
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
	Dirs []GateDir `json:"dirs"` // by path, "/" first
}

// GateDir is one directory of the skeleton.
type GateDir struct {
	Path  Bytes `json:"path"`
	Place bool  `json:"place,omitempty"` // something is mounted on it
	// the host's names that are not listed here are there, and their first access waits
	Ask bool `json:"ask,omitempty"`
	// the set-up lists it, so that the kernel knows its names before anybody looks for one
	List  bool       `json:"list,omitempty"`
	Names []GateName `json:"names,omitempty"`
}

// GateName is a name in a directory of the skeleton: a file to mount on, a link, or a name that does not exist.
type GateName struct {
	Name   Bytes  `json:"name"`
	Kind   Kind   `json:"kind"`             // File, Symlink or Absent
	Target Bytes  `json:"target,omitempty"` // of a link
	Access Access `json:"access,omitempty"` // of what is mounted on a file
}

// Identity is the one uid and the one gid that exist inside (user_namespaces(7)), and with SubUIDs or SubGIDs the
// subordinate ids (subuid(5)) that namespaces made inside may map. Then the caller has the maps written, not the
// set-up.
type Identity struct {
	InsideUID  uint32    `json:"inside_uid"`
	OutsideUID uint32    `json:"outside_uid"`
	InsideGID  uint32    `json:"inside_gid"`
	OutsideGID uint32    `json:"outside_gid"`
	SubUIDs    []IDRange `json:"sub_uids,omitempty"`
	SubGIDs    []IDRange `json:"sub_gids,omitempty"`
}

// IDRange is Count ids from First on; they have the same numbers inside and outside.
type IDRange struct {
	First uint32 `json:"first"`
	Count uint32 `json:"count"`
}

// HasRanges says whether there are subordinate ids.
func (id *Identity) HasRanges() bool { return len(id.SubUIDs)+len(id.SubGIDs) > 0 }

// Limit is one resource limit (prlimit(2)); Resource is the kernel's number, the values its units.
type Limit struct {
	Resource int    `json:"resource"`
	Name     string `json:"name"`
	Soft     uint64 `json:"soft"`
	Hard     uint64 `json:"hard"`
}

// Control is one limit of the session's control group (cgroup-v2): a file of the group and what the broker
// wrote to it. With any, the cgroup namespace begins at that group.
type Control struct {
	File  string `json:"file"`
	Value string `json:"value"`
}

// Where a program inside has control groups of its own, if it has any, and the one below that which it is in itself.
const (
	CgroupPlace = "/sys/fs/cgroup"
	CgroupLeaf  = "init"
)

// Landlock is the second line below the mounts (landlock(7)): whatever is handled and not granted is
// refused, whatever the mounts say.
type Landlock struct {
	ABI        int            `json:"abi"`
	HandledFS  uint64         `json:"handled_fs"`
	HandledNet uint64         `json:"handled_net,omitempty"` // ABI 4
	Scoped     uint64         `json:"scoped,omitempty"`      // ABI 6
	Rules      []LandlockRule `json:"rules"`
}

// LandlockRule grants Access below Path, as seen inside.
type LandlockRule struct {
	Path   Bytes  `json:"path"`
	Access uint64 `json:"access"`
}

// Insn is one instruction of classic BPF, struct sock_filter.
type Insn struct {
	Code uint16 `json:"code"`
	Jt   uint8  `json:"jt"`
	Jf   uint8  `json:"jf"`
	K    uint32 `json:"k"`
}

// Seccomp is the filter that is loaded last. The helper loads it and never compiles it.
type Seccomp struct {
	Rules   string `json:"rules"` // name of the rule set it was compiled from, for people
	Program []Insn `json:"program"`
	Notify  bool   `json:"notify"` // hand the listener to the broker as FdSeccomp
}

// Process is the program and how it starts.
type Process struct {
	Path   Bytes   `json:"path"` // absolute inside
	Argv   []Bytes `json:"argv"`
	Env    []Bytes `json:"env"`
	Dir    Bytes   `json:"dir"`
	Umask  uint32  `json:"umask"`
	TTY    bool    `json:"tty"`            // a pseudo-terminal of the sandbox's own is the controlling terminal
	AsPID1 bool    `json:"as_pid1"`        // no reaper: the program is process 1
	Idle   bool    `json:"idle,omitempty"` // nothing is started: the sandbox stands for programs that come later
	OOMAdj int     `json:"oom_adj"`        // added to oom_score_adj: memory pressure ends the sandbox before its broker
	// how much of inotify(7) there may be in its user namespace (namespaces(7), Linux 4.9); 0: what the user may have
	InotifyInstances int `json:"inotify_instances,omitempty"`
	InotifyWatches   int `json:"inotify_watches,omitempty"`
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
	FdProc    FdRole = "proc"    // the sandbox's /proc
	FdFuse    FdRole = "fuse"
	// Where a sandbox without a network asks about names: sockets at port 53 of Resolver.
	FdNamesUDP FdRole = "names-udp"
	FdNamesTCP FdRole = "names-tcp"
)

// Resolver is where names are asked about inside. Served is where names lead that sbx-proxy serves.
const (
	Resolver = "127.0.0.53"
	Served   = "127.0.0.80"
)

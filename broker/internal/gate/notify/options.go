package notify

import (
	"context"
	"os"
	"sync/atomic"
	"syscall"
)

// Ask is one question. Paths are as seen inside, which is as on the host for everything gated.
type Ask struct {
	PID    uint32 // of the asking thread, on the host
	Op     string // open-read, open-write, create, exec, stat, access, readlink, chdir, truncate, unlink, rename, link, mkdir, symlink, mknod, chmod, chown, utime, xattr, watch, connect, bind
	Path   string // resolved: the object that is decided about
	Asked  string // what the program named, before links were followed
	Target string // where a link leads, when the object is a link
	Flags  uint64 // of the call
	Nlink  uint64 // names the object has, this one included; 0 for one that does not exist yet
	Dev    uint64 // identity of the object, as its Nlink
	Ino    uint64
	Write  bool // the call changes what it names
	Dir    bool // the object is a directory
	Exe    string
	Cwd    string
}

// Answer is what became of a question. The zero value is no.
type Answer struct {
	Allow bool
	Errno syscall.Errno // of a no; 0 is EACCES
	Write bool          // what is granted may be written
	Keep  bool          // the answer outlives this call: graft the path where there is a Grafter
}

// Whole is what a View may be as well: it says whether nothing below a directory is denied. An open directory gives all
// that is below it, so that without this one no directory is ever handed over.
type Whole interface {
	Whole(path string) bool
}

// Served is what a View may be as well: the directories inside that this very process serves through FUSE, each at its own path of
// the host. The kernel does not let this process into them, so it looks at the host's names instead.
type Served interface {
	Served() []string
}

// View says what the sandbox's mounts grant. It is asked from several goroutines and must be a pure function of the plan.
type View interface {
	// Visible: the path lies on something mounted inside; what is missing there is missing.
	Visible(path string) bool
	// Gated: the path is the host's and may be asked for.
	Gated(path string) bool
	// Denied: never, with the errno that says so.
	Denied(path string) (bool, syscall.Errno)
}

// Opener makes read-only, nosuid, nodev copies of mounts. It needs CAP_SYS_ADMIN over a mount namespace that shows the
// path; the agent in the sandbox's user namespace has it and the broker, as a rule, has not.
type Opener interface {
	// Detach returns a detached copy of the mount at path, made for the very object, which it compares itself:
	// a descriptor of another mount namespace cannot be cloned from, so path is walked again. See func Detach.
	Detach(path string, object *os.File) (*os.File, error)
}

// Grant says what a graft is for.
type Grant uint8

// The three grants.
const (
	GrantRead  Grant = iota // the object, read-only
	GrantWrite              // the object, writable
	GrantName               // the name is to be made, removed or moved: its directory must become writable
)

// Grafter makes host paths appear natively inside.
type Grafter interface {
	// Graft returns when a walk inside reaches path.
	Graft(ctx context.Context, path string, g Grant) error
}

// Note is something that was refused without a question, or allowed and then failed.
type Note struct {
	PID   uint32
	Op    string
	Path  string
	Errno syscall.Errno
	Why   string
}

// Options of Serve.
type Options struct {
	Listener *os.File // plan.FdSeccomp; stays the caller's to close, after Serve
	View     View     // may be nil with ConnectOnly
	// Ask blocks until there is an answer; its context ends when the asking program does. nil refuses everything.
	Ask     func(context.Context, Ask) Answer
	Log     func(Note)    // may be nil
	Taken   *atomic.Int64 // counts the notifications; may be nil
	Opener  Opener        // nil: approved regular files are served as sealed copies, directories not at all
	Grafter Grafter       // nil: execution, writing and change of directory in gated places are refused
	Workers int           // questions open at once, beyond which calls are refused; 0 is 256
	// ConnectOnly serves a filter that notifies connect(2), and perhaps bind(2), and nothing else.
	ConnectOnly bool
}

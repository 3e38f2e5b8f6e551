//go:build linux

package notify

import (
	"context"
	"os"
	"sync/atomic"
	"syscall"
)

// Ask is one question. Paths are as seen inside, which is as on the host for everything gated.
type Ask struct {
	PID uint32 // of the asking thread, on the host
	// open-read, open-write, create, exec, stat, access, readlink, list, chdir, truncate, unlink, rename, link, mkdir,
	// symlink, mknod, chmod, chown, utime, xattr, watch, connect, bind
	Op     string
	Path   string // resolved: the object that is decided about
	Asked  string // what the program named, before links were followed
	Target string // where a link leads, when the object is a link
	Flags  uint64 // of the call
	Nlink  uint64 // names the object has, this one included; 0 for one that does not exist yet
	Dev    uint64 // identity of the object, as its Nlink
	Ino    uint64
	Write  bool   // the call changes what it names
	Dir    bool   // the object is a directory
	New    uint32 // S_IFREG, S_IFDIR: a file or directory is to be made where nothing has the name; else 0
	Ours   bool   // the call is about what was made so in this session
	// Foreign: the path is a file system that somebody's program serves, and the question is about all of it.
	Foreign bool
	Exe     string
	Cwd     string
}

// Answer is what became of a question. The zero value is no.
type Answer struct {
	Allow bool
	Errno syscall.Errno // of a no; 0 is EACCES
	Write bool          // what is granted may be written
	// Mount is the directory above, or the directory itself, that was granted as a whole, where there is a Grafter; "" is
	// what was asked about, or nothing of a directory but that it is there.
	Mount string
}

// Whole is what a View may be as well: it says whether nothing below a directory is denied. An open directory gives all
// that is below it, so that without this one no directory is ever handed over.
type Whole interface {
	Whole(path string) bool
}

// Served is what a View may be as well: the directories inside that this very process serves through FUSE, each at its
// own path of the host. The kernel does not let this process into them, so it looks at the host's names instead.
type Served interface {
	Served() []string
}

// View says what the sandbox's mounts grant. It is asked from several goroutines and must be a pure function of the
// plan.
type View interface {
	// Visible: the path lies on something mounted inside; what is missing there is missing.
	Visible(path string) bool
	// Gated: the path is the host's and may be asked for.
	Gated(path string) bool
	// Denied: never, with the errno that says so.
	Denied(path string) (bool, syscall.Errno)
}

// Opener makes nosuid, nodev copies of mounts. It needs CAP_SYS_ADMIN over a mount namespace that shows the
// path; the agent in the sandbox's user namespace has it and the broker, as a rule, has not.
type Opener interface {
	// Detach returns a detached copy of the mount at path, made for the very object, which it compares itself:
	// a descriptor of another mount namespace cannot be cloned from, so path is walked again. It is read-only unless write
	// is asked for. See func Detach.
	Detach(path string, object *os.File, write bool) (*os.File, error)
}

// Grafter makes host paths appear natively inside, so that the kernel itself can carry a call out. All its paths are
// resolved ones, at which the sandbox has nothing, or something that Place has made.
type Grafter interface {
	// Graft returns when a walk inside reaches path, a file or a tree, and no other object.
	Graft(path string, write bool) error
	// GraftFor is Graft of a single file for a process that stands in a directory which something was mounted on since;
	// rel leads from there to path.
	GraftFor(pid int, rel, path string) error
	// Place makes an empty directory at path, or a link there; Unplace takes it away.
	Place(path, link string) error
	Unplace(path string)
	// List makes places for names in a directory of the host's, less those that are hidden, so that it can be listed.
	// What they stand for
	// is not mounted.
	List(dir string, names []os.DirEntry) error
	// Granted says whether path lies in a tree that is grafted: what is missing there is missing.
	Granted(path string) bool
	// Placed says whether anything was ever placed or grafted.
	Placed() bool
	// Whole says whether a directory could be grafted: nothing in it is hidden, and it does not lead to anything that is
	// mounted.
	Whole(path string) bool
	// Mounted says whether something is grafted at path or below it, and Unmount takes that away: what is granted stays
	// granted.
	Mounted(path string) bool
	Unmount(path string) error
	// Moves says whether a directory may go to another name with all that is in it.
	Moves(from, to string) bool
	// Own says whether the sandbox had a directory of its own at path from the start.
	Own(path string) bool
}

// Foreign knows the file systems of the host that somebody's program serves. Who looks into one may wait for ever and
// cannot be killed, so the engine never does: it is asked about as a whole and mounted.
type Foreign interface {
	// Over is the mount point of the one that a path lies on, or "".
	Over(path string) string
	// Any says whether there are any.
	Any() bool
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
	View     View
	// Ask blocks until there is an answer; its context ends when the asking program does. nil refuses everything.
	Ask     func(context.Context, Ask) Answer
	Log     func(Note)    // may be nil
	Taken   *atomic.Int64 // counts the notifications; may be nil
	Opener  Opener        // nil: approved regular files are served as sealed copies, directories not at all
	Grafter Grafter       // nil: execution, writing, listing and change of directory in gated places are refused
	Foreign Foreign       // nil: there are none
	// Connect has a connection to the socket dev:ino made for a process, and says to whom it belongs. nil: it is just
	// made.
	Connect func(dev, ino uint64, pid uint32, connect func() bool)
	// TypeOnly says whether a look at a file's attributes shows its type, and is no question. nil: it asks.
	TypeOnly func(Ask) bool
	// Config says whether what is not mounted at a path is a repository's configuration, which is read without its
	// credentials. nil: none is.
	Config  func(path string) bool
	Carrier Carrier // nil: there is none
	workers int     // questions open at once, beyond which calls are refused; 0 is 512
}

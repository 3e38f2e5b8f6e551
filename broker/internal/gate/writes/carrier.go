//go:build linux

package writes

import (
	"fmt"
	"os"
	"runtime"
	"strings"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"

	"sbx.example/sbx/broker/internal/gate/notify"
	"sbx.example/sbx/broker/internal/guard"
	"sbx.example/sbx/broker/internal/secrets"
	"sbx.example/sbx/seccompbpf"
)

// Root is one tree that the kernel shows read-only inside.
type Root struct {
	Path  string       // where it is inside
	Host  string       // where it is on the host
	Tree  *os.File     // the writable mount below that; O_PATH, and nobody inside reaches it
	Place *guard.Place // what holds in it
	// Granted is the directory of the host's that was granted: the tree, or one above it on another file system.
	Granted string
	// Check says whether the contents of a name of that action may become next.
	Check func(rel string, what guard.Action, old, next []byte) error
}

// Place is a directory or file in a tree on which something else is mounted.
type Place struct {
	Path string
	How  Mounted
	ID   guard.ID // of the directory of the tree that it is mounted on; zero: it is not known
}

// Mounted says what is mounted on a place.
type Mounted uint8

const (
	Other  Mounted = iota // nothing of the tree: the kernel knows what may be done there
	Served                // the tree, by a file server that judges what changes it
	Native                // the tree, read-only, on what is served
)

// Refusal is a call that was not carried out because of what it names.
type Refusal struct {
	PID  uint32
	Op   string
	Path string // the host's
	Why  string
	Err  error // what Check said
	// Hidden: it does not exist for the session.
	Hidden bool
	// Kept: the host has a file of this name, which is hidden and stays as it is.
	Kept bool
}

// Options of New.
type Options struct {
	Roots []Root
	// Places are what is mounted on the trees, in the order of mounting.
	Places []Place
	// Links are those of the sandbox's own directories, with what they say.
	Links map[string]string
	// Secrets judges what has the name of a secret. Without it all of that counts as one.
	Secrets *secrets.Judge
	// Sockets are those that the session has bound.
	Sockets *guard.Made
	// Making is held while something is made under the name of a secret, until that is known to be the session's own.
	Making sync.Locker
	// GitDir is the directory of the repository that the project belongs to, if it is a linked worktree.
	GitDir string
	// Session remembers what the session made itself.
	Session *guard.Session
	// UID and GID are the one user and group that exist inside, and what they are outside.
	InsideUID, OutsideUID uint32
	InsideGID, OutsideGID uint32
	Refused               func(Refusal) // may be nil
	// Shared: somebody else looks at calls that lead to no such tree; else the kernel carries them out.
	Shared bool
	// Unmounting returns what takes away that which answers have mounted at a path of no tree and below it, nil where
	// there is nothing: the kernel removes and moves no mount point. May be nil.
	Unmounting func(path string) func()
	// NoLinks: nothing inside follows a link in a place that can be written.
	NoLinks bool
	// Nested says whether the caller is in a user namespace of its own, perhaps with mounts and a root of its own: a path
	// means something else there, and the kernel alone walks it. May be nil: none is.
	Nested func(c *notify.Call) bool
	// Server is who serves a path in a served place, or nil. Nil for all: what happens in such places is theirs alone.
	Server func(path string) Server
	// InPlace: nothing is mounted, and Landlock alone keeps programs from writing. To it the attributes of a file are
	// nobody's business, so what would change those is carried out here or refused. Nil: the trees are read-only mounts.
	InPlace *InPlace
}

// Server serves a place in a tree.
type Server interface {
	// Lend is told of the file behind a descriptor before it is handed over to be read and written: the server sees
	// nothing of what is done to it then. It says whether that may be.
	Lend(fd int) bool
	// Still keeps every directory of its own where it is until the function that it returns is called.
	Still() func()
	// Alone has nobody else judge and make, move or remove a name there until the function that it returns is called. Nil:
	// that could not be had in time.
	Alone() func()
	// Left is told that a name in a directory of the host leads elsewhere now, or nowhere, with all that is mounted on it.
	// It waits for the kernel, so not while anything is held.
	Left(dir guard.ID, name string)
}

// Carrier is one session's. Its methods belong to the goroutine that called Begin, but for End.
type Carrier struct {
	Options
	mu      sync.Mutex // held while a call is carried out
	roots   []root
	arch    seccompbpf.Arch
	calls   []*call
	callers callers
	ended   bool // nothing is carried any more, and every descriptor is closed
	texts   []*text
	at      map[string]place
	mask    uint32 // of this thread
	usual   uint32 // the mask of all threads, where this one has none of its own
	shared  bool   // it has none
	mem     [2][unix.PathMax]byte
	text    [unix.PathMax]byte
	shown   map[string]guard.ID // of InPlace.Granted, by path, when the session began
}

// root is a Root with what was found out about it.
type root struct {
	Root
	fd    int
	mount uint64
	judge judge
	above string // the tree's place in what was granted, with a slash behind; "" if it is that
}

// New takes the roots' descriptors.
func New(o Options) *Carrier {
	k := &Carrier{Options: o, at: map[string]place{}, roots: make([]root, len(o.Roots))}
	k.arch, k.calls = index()
	for i, r := range o.Roots {
		above := ""
		if r.Granted != r.Host {
			above = strings.TrimPrefix(r.Host, r.Granted+"/") + "/"
		}
		fd := int(r.Tree.Fd())
		k.roots[i] = root{Root: r, above: above, fd: fd, mount: mountOf(fd),
			judge: judge{root: r.Place, session: o.Session, tree: fd, keeper: k.keeper(),
				places: map[string]*guard.Place{}}}
		k.at[r.Path] = place{root: &k.roots[i]}
	}
	k.shown = o.InPlace.entries()
	hidden := o.InPlace.covered(k.roots)
	for i := range k.roots {
		k.roots[i].judge.covered = hidden
	}
	for _, p := range o.Places {
		switch on := k.find(p.Path); {
		case on.root == nil:
		case p.How == Other:
			k.at[p.Path] = place{}
		default:
			rel := newName(on.root, p.Path, false).path()
			k.at[p.Path] = place{root: on.root, look: p.How == Served, native: p.How == Native, rel: rel, id: p.ID}
		}
	}
	return k
}

// Begin makes this goroutine's thread one that can act for others: with a mask of modes of its own, without
// capabilities, and never interrupted, because a hand-over that a signal interrupts could be answered with another
// descriptor than the one handed over.
func (k *Carrier) Begin() error {
	runtime.LockOSThread() // and never unlocked: the thread ends with the goroutine
	own := unix.Unshare(unix.CLONE_FS)
	if own != nil && own != unix.EPERM {
		return fmt.Errorf("carrying out writes: a mask of its own: %w", own)
	}
	if e := layCapabilitiesDown(); e != 0 {
		return fmt.Errorf("carrying out writes: laying capabilities down: %w", e)
	}
	var all unix.Sigset_t
	for i := range all.Val {
		all.Val[i] = ^all.Val[i]
	}
	if err := unix.PthreadSigmask(unix.SIG_SETMASK, &all, nil); err != nil {
		return fmt.Errorf("carrying out writes: blocking signals: %w", err)
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.mask = 0o777
	if k.usual = umask(k.mask); own != nil { // the filter of a container's engine refuses all of unshare(2)
		k.shared = true
		k.restMask()
	}
	return nil
}

// restMask gives all threads their mask back where this one has none of its own. What another makes while a call of the
// program's is carried out may get the mask of that program: the broker's own files are private in any case.
func (k *Carrier) restMask() {
	if k.shared && k.mask != k.usual {
		k.mask = k.usual
		umask(k.mask)
	}
}

// End looks a last time at what the session wrote, when it is over.
func (k *Carrier) End() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.installTexts()
	k.ended = true
	k.callers.forget()
	for i := range k.roots {
		k.roots[i].Tree.Close()
	}
}

// job is one call that is looked at.
type job struct {
	*Carrier
	call  *notify.Call
	d     *call
	flags uint64
	reach bool   // the call may be carried out in a served place, too
	cwd   string // what it is, when it was asked for
}

// Take looks at a call. It answers it if it leads to one of the trees, and where nobody else would.
func (k *Carrier) Take(c *notify.Call) bool {
	arch, nr := c.Key()
	if arch != uint32(k.arch) || nr < 0 || int(nr) >= len(k.calls) || k.calls[nr] == nil {
		return false
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	defer k.restMask()
	j := job{Carrier: k, call: c, d: k.calls[nr]}
	if j.d.flags >= 0 {
		j.flags = uint64(uint32(c.Arg(int(j.d.flags))))
	}
	if k.ended { // to the kernel the trees are read-only
		j.pass()
		return true
	}
	if len(k.texts) > 0 {
		k.installTexts()
	}
	if k.Nested != nil && j.d.kind != kindUmask && k.Nested(c) {
		if j.setsGroup() {
			return j.answer(unix.EPERM)
		}
		c.Continue()
		return true
	}
	switch j.d.kind {
	case kindOpen:
		if j.d.flags < 0 {
			j.flags = unix.O_CREAT | unix.O_WRONLY | unix.O_TRUNC
		}
		if j.readsOnly() && (j.InPlace == nil || len(j.InPlace.Split) == 0) {
			return j.elsewhere()
		}
		j.reach = j.Server != nil && j.flags&(unix.O_ACCMODE|unix.O_EXCL|unix.O_APPEND|nameless) == unix.O_RDWR
		return j.open()
	case kindMake, kindSymlink, kindRemove:
		j.reach = j.Server != nil && j.d.kind == kindRemove && j.removesDir()
		return j.one()
	case kindLink, kindRename:
		j.reach = j.Server != nil
		return j.two()
	case kindAlter, kindAccess:
		return j.alter()
	case kindBind:
		return j.bind()
	case kindUmask:
		k.callers.note(c, uint32(c.Arg(0))&0o777)
		c.Continue()
		return true
	}
	return j.elsewhere()
}

// elsewhere is for a call that leads to none of the trees.
func (j *job) elsewhere() bool {
	if j.setsGroup() {
		return j.answer(unix.EPERM)
	}
	if j.Shared && j.d.path >= 0 || j.Shared && j.d.kind == kindBind {
		return false
	}
	if j.uncovers() {
		return true
	}
	j.pass()
	return true
}

// uncovers takes away what answers have mounted on a name that goes, and then lets the kernel look. It says whether
// there was anything: then the call is answered when that is done.
func (j *job) uncovers() bool {
	if j.Unmounting == nil || j.d.kind != kindRemove && j.d.kind != kindRename {
		return false
	}
	var todo []func()
	for i, at := range [...]struct{ dir, path int8 }{{j.d.dir, j.d.path}, {j.d.dir2, j.d.path2}} {
		if at.path < 0 {
			continue
		}
		if p := j.written(at.dir, at.path, j.mem[i][:]); p != "" {
			if f := j.Unmounting(p); f != nil {
				todo = append(todo, f)
			}
		}
	}
	if len(todo) == 0 {
		return false
	}
	call := *j.call // the other one is the next call's
	go func() {
		for _, f := range todo {
			f()
		}
		call.Continue()
	}()
	return true
}

// refuse notes a refusal. That the tree is read-only the kernel says in its own words.
func (j *job) refuse(n *name, r ruling, e unix.Errno) bool {
	j.tell(n, r.Why, e)
	if e != unix.EROFS {
		return j.answer(e)
	}
	j.kernel()
	return true
}

// kernel lets the kernel carry a call out, but never one that sets the set-group-id bit: it could be a file's.
func (j *job) kernel() {
	if j.setsGroup() {
		j.call.Fail(unix.EPERM)
		return
	}
	j.pass()
}

func (j *job) setsGroup() bool {
	return j.d.op == "chmod" && j.call.Arg(int(j.d.arg))&unix.S_ISGID != 0
}

// tell notes a refusal that is answered with e.
func (j *job) tell(n *name, why string, e syscall.Errno) {
	j.say(Refusal{Path: n.onHost(), Why: why, Hidden: e == unix.ENOENT})
}

func (j *job) say(r Refusal) {
	if r.PID, r.Op = j.call.PID(), j.d.op; j.Refused != nil {
		j.Refused(r)
	}
}

// answer ends a call with what the kernel said of its being carried out.
func (j *job) answer(e unix.Errno) bool {
	if e != 0 {
		j.call.Fail(e)
	} else {
		j.call.Value(0)
	}
	return true
}

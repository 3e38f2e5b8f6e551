package writes

import (
	"fmt"
	"os"
	"path"
	"runtime"
	"strings"

	"golang.org/x/sys/unix"

	"sbx/broker/internal/gate/notify"
	"sbx/broker/internal/guard"
	"sbx/seccompbpf"
)

// Root is one tree that the kernel shows read-only inside.
type Root struct {
	Path   string       // where it is inside, and on the host
	Tree   *os.File     // the writable mount below that; O_PATH, and nobody inside reaches it
	Places []string     // below Path, where something else is mounted
	Place  *guard.Place // what holds in it
	// Granted is the directory that was granted: the tree, or one above it whose other names somebody else serves.
	Granted string
	// Check says whether the contents of a checked name may become next.
	Check func(rel string, old, next []byte) error
}

// Refusal is a call that was not carried out because of what it names.
type Refusal struct {
	PID  uint32
	Op   string
	Path string
	Why  string
	Err  error // what Check said
}

// Options of New.
type Options struct {
	Roots []Root
	// Session remembers what the session made itself.
	Session *guard.Session
	// UID and GID are the one user and group that exist inside, and what they are outside.
	InsideUID, OutsideUID uint32
	InsideGID, OutsideGID uint32
	Refused               func(Refusal) // may be nil
	// Shared: somebody else looks at calls that lead to no such tree; else the kernel carries them out.
	Shared bool
	// NoLinks: nothing inside follows a link in a place that can be written.
	NoLinks bool
}

// Carrier is one session's. Its methods belong to the goroutine that called Begin.
type Carrier struct {
	Options
	roots   []root
	arch    seccompbpf.Arch
	calls   []*call
	callers callers
	texts   []*text
	tops    []top
	mask    uint32 // of this thread
	mem     [2][unix.PathMax]byte
	text    [unix.PathMax]byte
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
	k := &Carrier{Options: o}
	k.arch, k.calls = index()
	for _, r := range o.Roots {
		above := ""
		if r.Granted != r.Path {
			above = strings.TrimPrefix(r.Path, r.Granted+"/") + "/"
			k.addTop(r.Granted)
		}
		k.roots = append(k.roots, root{Root: r, above: above, fd: int(r.Tree.Fd()), mount: mountOf(int(r.Tree.Fd())), judge: judge{root: r.Place, session: o.Session, tree: int(r.Tree.Fd()), places: map[string]*guard.Place{}}})
	}
	return k
}

// top is a granted directory whose names somebody else serves. It is only looked at, for links that lead from there to a tree.
type top struct {
	path string
	fd   int
}

func (k *Carrier) addTop(p string) {
	for _, t := range k.tops {
		if t.path == p {
			return
		}
	}
	if fd, err := unix.Open(p, unix.O_PATH|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0); err == nil {
		k.tops = append(k.tops, top{p, fd})
	}
}

// topOf finds the directory of that kind that a clean path lies in, and the rest of the path with a NUL.
func (k *Carrier) topOf(abs string) (int, string) {
	for _, t := range k.tops {
		if rest, ok := strings.CutPrefix(abs, t.path+"/"); ok {
			return t.fd, rest + "\x00"
		}
	}
	return -1, ""
}

// Begin makes this goroutine's thread one that can act for others: with a mask of modes of its own, without capabilities, and never
// interrupted, because a hand-over that a signal interrupts could be answered with another descriptor than the one handed over.
func (k *Carrier) Begin() error {
	runtime.LockOSThread() // and never unlocked: the thread ends with the goroutine
	if err := unix.Unshare(unix.CLONE_FS); err != nil {
		return fmt.Errorf("carrying out writes: a mask of its own: %w", err)
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
	k.mask = 0o777
	umask(k.mask)
	return nil
}

// job is one call that is looked at.
type job struct {
	*Carrier
	call  *notify.Call
	d     *call
	flags uint64
	cwd   string // what it is, when it was asked for
}

// Take looks at a call. It answers it if it leads to one of the trees, and where nobody else would.
func (k *Carrier) Take(c *notify.Call) bool {
	arch, nr := c.Key()
	if arch != uint32(k.arch) || nr < 0 || int(nr) >= len(k.calls) || k.calls[nr] == nil {
		return false
	}
	j := job{Carrier: k, call: c, d: k.calls[nr]}
	if j.d.flags >= 0 {
		j.flags = uint64(uint32(c.Arg(int(j.d.flags))))
	}
	if len(k.texts) > 0 {
		k.settle()
	}
	switch j.d.kind {
	case kindOpen:
		if j.d.flags < 0 {
			j.flags = unix.O_CREAT | unix.O_WRONLY | unix.O_TRUNC
		}
		return j.open()
	case kindMake, kindSymlink, kindRemove:
		return j.one()
	case kindLink, kindRename:
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
	j.call.Continue()
	return true
}

// refuse notes a refusal and lets the kernel say it in its own words: to it, the tree is read-only.
func (j *job) refuse(n *name, r ruling) bool {
	j.tell(n, r.Why, nil)
	j.kernel()
	return true
}

// kernel lets the kernel carry a call out, but never one that sets the set-group-id bit: it could be a file's.
func (j *job) kernel() {
	if j.setsGroup() {
		j.call.Fail(unix.EPERM)
		return
	}
	j.call.Continue()
}

func (j *job) setsGroup() bool {
	return j.d.op == "chmod" && j.call.Arg(int(j.d.arg))&unix.S_ISGID != 0
}

func (j *job) tell(n *name, why string, err error) {
	if j.Refused != nil {
		j.Refused(Refusal{PID: j.call.PID(), Op: j.d.op, Path: n.abs(), Why: why, Err: err})
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

// under finds the tree that a clean path lies in.
func (k *Carrier) under(abs string) *root {
	for i := range k.roots {
		if r := &k.roots[i]; strings.HasPrefix(abs, r.Path) && (len(abs) == len(r.Path) || abs[len(r.Path)] == '/') {
			for _, p := range r.Places {
				if strings.HasPrefix(abs, p) && (len(abs) == len(p) || abs[len(p)] == '/') {
					return nil
				}
			}
			return r
		}
	}
	return nil
}

// holds says whether a clean path leads to one of the trees: such directories are the sandbox's own, and no links.
func (k *Carrier) holds(abs string) bool {
	for i := range k.roots {
		if p := k.roots[i].Path; abs == "/" || strings.HasPrefix(p, abs) && (len(p) == len(abs) || p[len(abs)] == '/') {
			return true
		}
	}
	return false
}

// clean is path.Clean, which keeps a path that is clean already where it is.
func clean(p string) string { return path.Clean(p) }

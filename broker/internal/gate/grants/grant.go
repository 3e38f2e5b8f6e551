//go:build linux

package grants

import (
	"errors"
	"path"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"
	"sbx.example/sbx/broker/internal/gate/fuse"
)

// Gate is what has been asked and granted.
type Gate struct {
	opts      Options
	mu        sync.Mutex
	grants    map[string]*Grant
	questions map[questionKey]*question
	denials   map[denialKey]denial
	walkers   map[walkerKey]time.Time
	leaving   map[string]chan struct{} // what is being unmounted; each is closed when it is
	statics   []string
	waiting   int
	reviews   int // how often it was looked at what is to be taken back
}

// ErrServe is a Mounter's answer to Graft for what must not be mounted: the server shows it itself, where a socket of
// the host cannot be connected to.
var ErrServe = errors.New("to be served, not mounted")

// Grant is a path that is mounted, or about to be.
type Grant struct {
	path string
	mode Mode
	// of what was granted: what the host puts in its place is something else; 0 until it is seen. Guarded by Gate.mu
	typ   uint32
	ready chan struct{} // closed when mounted
	// since and told: threads whose walk had passed the path before it was mounted are sent back once. Guarded by Gate.mu.
	since time.Time
	told  map[uint32]bool
	// dev and ino are what is mounted, once known: a file saved atomically on the host is a new one. Guarded by Gate.mu.
	dev, ino uint64
	searched bool // see Answer
	planned  bool // mounted before the server started; never taken back
	// served: nothing is mounted, the server shows the object itself. Set before ready is closed.
	served bool
	// names: the directory may be listed, and that is all.
	names bool
	// overdue: somebody was sent back because the mount took too long. Guarded by Gate.mu.
	overdue bool
}

// New makes a gate at which nothing has been asked yet.
func New(o Options) *Gate {
	return &Gate{opts: o, grants: make(map[string]*Grant), questions: make(map[questionKey]*question),
		denials: make(map[denialKey]denial), walkers: make(map[walkerKey]time.Time),
		leaving: make(map[string]chan struct{})}
}

// Asks says whether anybody can be asked.
func (gt *Gate) Asks() bool { return gt.opts.Ask != nil }

// Bound enters what was mounted before the server started.
func (gt *Gate) Bound(p string, m Mode) {
	g := &Grant{path: p, mode: m, ready: make(chan struct{}), planned: true}
	close(g.ready)
	gt.grants[p] = g
}

// Fix notes a directory of the tree, before the first request.
func (gt *Gate) Fix(p string) { gt.statics = append(gt.statics, p) }

// Statics are those directories.
func (gt *Gate) Statics() []string { return gt.statics }

// Fixed reports whether p is a directory of the tree or has one below it.
func (gt *Gate) Fixed(p string) bool {
	for _, d := range gt.statics {
		if covers(p, d) {
			return true
		}
	}
	return false
}

// Path and Mode are what was granted.
func (g *Grant) Path() string { return g.path }
func (g *Grant) Mode() Mode   { return g.mode }

// Names says whether a directory may be listed, and that is all.
func (g *Grant) Names() bool { return g.names }

// Served says whether nothing is mounted: the server shows the object itself. It is asked when the grant is ready.
func (g *Grant) Served() bool { return g.served }

// Ready says whether what is granted is there.
func (g *Grant) Ready() bool {
	select {
	case <-g.ready:
		return true
	default:
		return false
	}
}

// Find finds the grant, if any, that covers a request for an object.
func (gt *Gate) Find(n Object, o Op) *Grant {
	gt.mu.Lock()
	defer gt.mu.Unlock()
	return gt.covers(n, o)
}

// covers finds what grants a request for an object: a socket needs a grant of its own, and what is served for
// reading can still be asked for to write. gt.mu is held.
func (gt *Gate) covers(n Object, o Op) *Grant {
	if n.Type == unix.S_IFSOCK {
		if g := gt.grants[n.Path]; g != nil && (g.typ == unix.S_IFSOCK || g.typ == 0) {
			return g
		}
		return nil
	}
	for p := n.Path; p != "/"; p = path.Dir(p) {
		g := gt.grants[p]
		if g == nil || g.readServed() && o.writes() || g.names && p != n.Path {
			continue
		}
		if g.typ == 0 && p == n.Path {
			g.typ = n.Type
		}
		if p == n.Path && g.typ == n.Type || p != n.Path && (g.typ == unix.S_IFDIR || g.typ == 0) {
			return g
		}
	}
	return nil
}

// late reports whether somebody was sent back for the mount before: the kernel repeats a walk once, and what comes then
// is told to the program.
func (gt *Gate) late(g *Grant, pid uint32) bool {
	gt.mu.Lock()
	defer gt.mu.Unlock()
	was := g.overdue
	g.overdue = true
	g.tell(pid)
	return was
}

// readServed is guarded by Gate.mu.
func (g *Grant) readServed() bool { return g.served && g.mode == RO }

// enter enters a grant and settles the questions below it; a fresh one is to be mounted by the caller. gt.mu is held.
func (gt *Gate) enter(p string, m Mode, typ uint32) (g *Grant, fresh bool) {
	if g := gt.grants[p]; g != nil && !(g.readServed() && m != RO) && !g.names && (g.typ == typ || g.typ == 0 ||
		typ == 0) {
		return g, false
	}
	g = &Grant{path: p, mode: m, typ: typ, ready: make(chan struct{})}
	gt.grants[p] = g
	gt.endBelow(g)
	return g, true
}

// endBelow ends the questions that a grant answers: those who wait look again. gt.mu is held.
func (gt *Gate) endBelow(g *Grant) {
	for k, q := range gt.questions {
		if !covers(g.path, k.path) || g.typ != unix.S_IFDIR && k.path != g.path || g.mode == RO && k.right == "write" {
			continue
		}
		delete(gt.questions, k)
		q.allowed = true
		q.cancel()
		close(q.done)
	}
}

// mount carries a grant out. A grant that cannot be mounted is withdrawn and counts as denied.
func (gt *Gate) mount(g *Grant) {
	err := errors.New("no agent")
	gt.mu.Lock()
	typ := g.typ
	gt.mu.Unlock()
	if gt.opts.Mounter != nil {
		if typ == unix.S_IFDIR { // what it would cover nobody could take away, nor who stands above it remove
			_ = gt.unmount(g.path, g)
		}
		err = gt.opts.Mounter.Graft(g.path, g.mode, typ, g.searched)
	}
	gt.mu.Lock()
	defer gt.mu.Unlock()
	if errors.Is(err, ErrServe) {
		g.served, err = true, nil
	}
	if err != nil {
		gt.opts.Log.Printf("grafting %q: %v", g.path, err)
		if gt.grants[g.path] == g {
			delete(gt.grants, g.path)
		}
		gt.refuse(denialKey{path: g.path}, fuse.EACCES)
	}
	g.since = time.Now()
	close(g.ready)
}

// Refresh mounts a granted file anew if the host has replaced it, and reports whether it does.
func (gt *Gate) Refresh(g *Grant, fd int) bool {
	var st unix.Stat_t
	if gt.opts.Mounter == nil || unix.Fstat(fd, &st) != nil {
		return false
	}
	gt.mu.Lock()
	defer gt.mu.Unlock()
	if g.ino == 0 {
		g.dev, g.ino = st.Dev, st.Ino
	}
	if g.served || g.dev == st.Dev && g.ino == st.Ino || gt.grants[g.path] != g {
		return false
	}
	anew := &Grant{path: g.path, mode: g.mode, ready: make(chan struct{}), dev: st.Dev, ino: st.Ino, planned: g.planned}
	gt.grants[g.path] = anew
	go func() {
		if err := gt.opts.Mounter.Revoke(g.path); err != nil {
			gt.opts.Log.Printf("revoking replaced %q: %v", g.path, err)
		}
		gt.mount(anew)
	}()
	return true
}

// SendBack reports whether a thread should repeat its walk because it may have passed a path just before it was
// mounted. Who comes back a second time holds an old directory descriptor and is served by the loopback.
func (gt *Gate) SendBack(g *Grant, pid uint32, waited bool) bool {
	gt.mu.Lock()
	defer gt.mu.Unlock()
	if g.served { // there is no mount to cross into
		return false
	}
	if g.Ready() && (g.since.IsZero() || time.Since(g.since) > 2*time.Second) {
		g.told = nil
		return waited
	}
	if g.told[pid] {
		return false
	}
	g.tell(pid)
	return true
}

// tell notes that a thread was sent back. Gate.mu is held.
func (g *Grant) tell(pid uint32) {
	if g.told == nil {
		g.told = make(map[uint32]bool)
	}
	g.told[pid] = true
}

// Answered says whether a grant is not of the plan: what that mounts at a name may be another file than the host's.
func (gt *Gate) Answered(g *Grant) bool {
	gt.mu.Lock()
	defer gt.mu.Unlock()
	return !g.planned
}

// covers reports whether p is q or an ancestor of it.
func covers(p, q string) bool {
	return p == q || p == "/" || strings.HasPrefix(q, p) && q[len(p)] == '/'
}

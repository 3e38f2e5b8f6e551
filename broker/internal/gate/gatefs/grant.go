package gatefs

import (
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"
	"sbx/broker/internal/gate/fuse"
)

// gate is what has been asked and granted.
type gate struct {
	mu        sync.Mutex
	grants    map[string]*grant
	questions map[questionKey]*question
	denials   map[denialKey]denial
	walkers   map[walkerKey]time.Time
	made      map[string]identity // what was made after an answer allowed it
	statics   []string
	waiting   int

	maxWaiting int
}

// ErrServe is an Agent's answer to Graft for what must not be mounted: the server shows it itself, where a socket of
// the host cannot be connected to.
var ErrServe = errors.New("to be served, not mounted")

// grant is a path that is mounted, or about to be.
type grant struct {
	path string
	mode Mode
	// of what was granted: what the host puts in its place is something else; 0 until it is seen. Guarded by gate.mu
	typ   uint32
	ready chan struct{} // closed when mounted
	// since and told: threads whose walk had passed the path before it was mounted are sent back once. Guarded by gate.mu.
	since time.Time
	told  map[uint32]bool
	// dev and ino are what is mounted, once known: a file saved atomically on the host is a new one. Guarded by gate.mu.
	dev, ino uint64
	planned  bool // mounted before the server started; never taken back
	// served: nothing is mounted, the server shows the object itself. Set before ready is closed.
	served bool
	// names: the directory may be listed, and that is all.
	names bool
	// overdue: somebody was sent back because the mount took too long. Guarded by gate.mu.
	overdue bool
}

func (gt *gate) init(o *Options) {
	gt.grants = make(map[string]*grant)
	gt.questions = make(map[questionKey]*question)
	gt.denials = make(map[denialKey]denial)
	gt.walkers = make(map[walkerKey]time.Time)
	gt.maxWaiting = o.MaxWaiting
	if gt.maxWaiting == 0 {
		gt.maxWaiting = 512
	}
}

// bound enters what was mounted before the server started.
func (gt *gate) bound(p string, m Mode) {
	g := &grant{path: p, mode: m, ready: make(chan struct{}), planned: true}
	close(g.ready)
	gt.grants[p] = g
}

// fixed reports whether p is a directory of the tree or has one below it. gt.statics is written before the first
// request.
func (gt *gate) fixed(p string) bool {
	for _, d := range gt.statics {
		if covers(p, d) {
			return true
		}
	}
	return false
}

func (g *grant) settled() bool {
	select {
	case <-g.ready:
		return true
	default:
		return false
	}
}

// coversNode finds what grants a request for an object: a socket needs a grant of its own, and what is served for
// reading can still be asked for to write. gt.mu is held.
func (gt *gate) coversNode(n *node, o op) *grant {
	if n.typ == unix.S_IFSOCK {
		if g := gt.grants[n.path]; g != nil && (g.typ == unix.S_IFSOCK || g.typ == 0) {
			return g
		}
		return nil
	}
	for p := n.path; p != "/"; p = path.Dir(p) {
		g := gt.grants[p]
		if g == nil || g.readServed() && o.writes() || g.names && p != n.path {
			continue
		}
		if g.typ == 0 && p == n.path {
			g.typ = n.typ
		}
		if p == n.path && g.typ == n.typ || p != n.path && (g.typ == unix.S_IFDIR || g.typ == 0) {
			return g
		}
	}
	return nil
}

// late reports whether somebody was sent back for the mount before: the kernel repeats a walk once, and what comes then
// is told to the program.
func (gt *gate) late(g *grant, pid uint32) bool {
	gt.mu.Lock()
	defer gt.mu.Unlock()
	was := g.overdue
	g.overdue = true
	g.tell(pid)
	return was
}

// readServed is guarded by gate.mu.
func (g *grant) readServed() bool { return g.served && g.mode == RO }

// grant enters a grant and starts its mount. gt.mu is held.
func (gt *gate) grant(s *Server, p string, m Mode) *grant {
	g, fresh := gt.enter(p, m, 0)
	if fresh {
		go gt.mount(s, g)
	}
	return g
}

// enter enters a grant and settles the questions below it; a fresh one is to be mounted by the caller. gt.mu is held.
func (gt *gate) enter(p string, m Mode, typ uint32) (g *grant, fresh bool) {
	if g := gt.grants[p]; g != nil && !(g.readServed() && m != RO) && !g.names && (g.typ == typ || g.typ == 0 ||
		typ == 0) {
		return g, false
	}
	g = &grant{path: p, mode: m, typ: typ, ready: make(chan struct{})}
	gt.grants[p] = g
	gt.settleBelow(g)
	return g, true
}

// settleBelow ends the questions that a grant answers: those who wait look again. gt.mu is held.
func (gt *gate) settleBelow(g *grant) {
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
func (gt *gate) mount(s *Server, g *grant) {
	err := errors.New("no agent")
	gt.mu.Lock()
	typ := g.typ
	gt.mu.Unlock()
	if s.opts.Agent != nil {
		err = s.opts.Agent.Graft(g.path, g.mode, typ)
	}
	gt.mu.Lock()
	defer gt.mu.Unlock()
	if errors.Is(err, ErrServe) {
		g.served, err = true, nil
	}
	if err != nil {
		s.log.Printf("grafting %q: %v", g.path, err)
		if gt.grants[g.path] == g {
			delete(gt.grants, g.path)
		}
		gt.refuse(denialKey{path: g.path}, fuse.EACCES)
	}
	g.since = time.Now()
	close(g.ready)
}

// refresh mounts a granted file anew if the host has replaced it, and reports whether it does.
func (s *Server) refresh(g *grant, fd int) bool {
	var st unix.Stat_t
	if g.mode == Overlay || s.opts.Agent == nil || unix.Fstat(fd, &st) != nil {
		return false
	}
	gt := &s.gate
	gt.mu.Lock()
	defer gt.mu.Unlock()
	if g.ino == 0 {
		g.dev, g.ino = st.Dev, st.Ino
	}
	if g.served || g.dev == st.Dev && g.ino == st.Ino || gt.grants[g.path] != g {
		return false
	}
	anew := &grant{path: g.path, mode: g.mode, ready: make(chan struct{}), dev: st.Dev, ino: st.Ino, planned: g.planned}
	gt.grants[g.path] = anew
	go func() {
		if err := s.opts.Agent.Revoke(g.path); err != nil {
			s.log.Printf("revoking replaced %q: %v", g.path, err)
		}
		gt.mount(s, anew)
	}()
	return true
}

// sendBack reports whether a thread should repeat its walk because it may have passed a path just before it was
// mounted. Who comes back a second time holds an old directory descriptor and is served by the loopback.
func (gt *gate) sendBack(g *grant, pid uint32, waited bool) bool {
	gt.mu.Lock()
	defer gt.mu.Unlock()
	if g.served { // there is no mount to cross into
		return false
	}
	if g.settled() && (g.since.IsZero() || time.Since(g.since) > 2*time.Second) {
		g.told = nil
		return waited
	}
	if g.told[pid] {
		return false
	}
	g.tell(pid)
	return true
}

// tell notes that a thread was sent back. gate.mu is held.
func (g *grant) tell(pid uint32) {
	if g.told == nil {
		g.told = make(map[uint32]bool)
	}
	g.told[pid] = true
}

// Grant mounts a gated path without a question.
func (s *Server) Grant(p string, m Mode) error {
	if s.gate.fixed(p) {
		return fmt.Errorf("granting %s: it is part of the tree", p)
	}
	s.gate.mu.Lock()
	clear(s.gate.denials)
	g := s.gate.grant(s, p, m)
	s.gate.mu.Unlock()
	<-g.ready
	s.gate.mu.Lock()
	defer s.gate.mu.Unlock()
	if s.gate.grants[p] != g {
		return fmt.Errorf("granting %s: the agent could not mount it", p)
	}
	return nil
}

// Revoke takes a grant back: new accesses ask again. Files and directories that are open stay open.
func (s *Server) Revoke(p string) error {
	s.gate.mu.Lock()
	g := s.gate.grants[p]
	delete(s.gate.grants, p)
	s.gate.mu.Unlock()
	if g == nil {
		return fmt.Errorf("revoking %s: it is not granted", p)
	}
	<-g.ready
	var err error
	if s.opts.Agent != nil && !g.served {
		err = s.opts.Agent.Revoke(p)
	}
	parent := s.nodes.pathID(path.Dir(p), unix.S_IFDIR, "")
	if code := s.fuse.EntryNotify(parent, path.Base(p)); code != fuse.OK && code != fuse.ENOENT {
		err = errors.Join(err, fmt.Errorf("making the kernel forget %s: %v", p, code))
	}
	return err
}

// RevokeAll takes back every grant that was made at a path, above it or below it, and returns how many there were.
func (s *Server) RevokeAll(p string) (n int, err error) {
	return s.revoke(func(q string) bool { return covers(p, q) || covers(q, p) })
}

// Review takes back the grants that do not stand any more.
func (s *Server) Review(stands func(p string, m Mode, mounted, names bool) bool) error {
	gt := &s.gate
	type standing struct {
		mode           Mode
		mounted, names bool
	}
	held := make(map[string]standing)
	gt.mu.Lock()
	for p, g := range gt.grants {
		if !g.planned {
			held[p] = standing{g.mode, g.settled() && !g.served, g.names}
		}
	}
	gt.mu.Unlock()
	var err error
	for p, h := range held {
		if stands(p, h.mode, h.mounted, h.names) {
			continue
		}
		_, rerr := s.revoke(func(q string) bool { return p == q })
		err = errors.Join(err, rerr)
	}
	return err
}

// RevokeBelow takes back the grants at a path and below it. What another answer has granted there is mounted again by
// the next access.
func (s *Server) RevokeBelow(p string) error {
	_, err := s.revoke(func(q string) bool { return covers(p, q) })
	return err
}

func (s *Server) revoke(which func(string) bool) (n int, err error) {
	gt := &s.gate
	gt.mu.Lock()
	var list []string
	for q, g := range gt.grants {
		if !g.planned && which(q) {
			list = append(list, q)
		}
	}
	gt.mu.Unlock()
	// what lies below first: forgetting a name takes it along
	slices.SortFunc(list, func(a, b string) int { return strings.Compare(b, a) })
	for _, q := range list {
		if rerr := s.Revoke(q); rerr != nil {
			err = errors.Join(err, rerr)
			continue
		}
		n++
	}
	return n, err
}

// Stop denies all open questions and those to come.
func (s *Server) Stop() {
	s.close()
}

// Populate makes a dentry for every name of every skeleton that can ask, so that their first accesses arrive as
// revalidations, which hold no lock. It is called after the native mounts and before the command starts.
func (s *Server) Populate() error {
	if s.opts.Agent == nil {
		return nil
	}
	for _, d := range s.gate.statics {
		n := s.nodes.get(s.nodes.pathID(d, unix.S_IFDIR, ""))
		if !n.asks() {
			continue
		}
		if err := s.opts.Agent.Populate(d); err != nil {
			return fmt.Errorf("populating %s: %w", d, err)
		}
	}
	return nil
}

func (n *node) asks() bool {
	if n.dir.Unlisted == AskFirst {
		return true
	}
	for _, c := range n.dir.Children {
		if c.Kind == Gated {
			return true
		}
	}
	return false
}

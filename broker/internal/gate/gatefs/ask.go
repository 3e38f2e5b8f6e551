package gatefs

import (
	"context"
	"path"
	"time"

	"golang.org/x/sys/unix"
	"sbx/broker/internal/decide"
	"sbx/broker/internal/gate/fuse"
)

// Ask puts a question and returns when it is answered. Ctx ends when nobody waits for the answer any more. It runs in the place of whoever
// waits for it, and must call Park of ctx's decide.After before it waits for anything itself.
type Ask func(ctx context.Context, r Request) Answer

// Request is what a thread wants and does not get without an answer.
type Request struct {
	PID  uint32 // the thread, as the server's pid namespace knows it; 0 if it does not
	Op   string // lookup, stat, open, write, exec, list, access, xattr, statfs, create
	Path string
	Dir  bool
	// Socket: the object is a socket, which is connected to, not opened.
	Socket bool
	// Hidden: the object does not exist inside. Guarded: it is read-only by its name. Kept: something was to be made in place of a hidden
	// object. Only Options.Refused is told of such.
	Hidden, Guarded, Kept bool
	Why                   error // Guarded: what Options.Check said, if it was asked
	Many                  bool  // Path is a directory in which too many names were asked about one by one; the answer is for all of them
	// With is a directory above that has been allowed with its names: the answer is yes unless something forbids this one or asks about it.
	With string

	typ     uint32  // the object's
	process uint32  // the walker's
	fresh   bool    // Path does not exist yet: there is nothing to mount
	above   opening // that of With
}

// Answer says what is granted. Path is the file or tree to mount, the path asked about (also if empty) or a directory above it.
type Answer struct {
	Allow bool
	Path  string
	Mode  Mode
	// Once lets those who wait now do what they asked for, and mounts nothing. It is for files, and for the names in a directory, where
	// it holds for one walk: a directory and a socket are of use only where they are mounted.
	Once bool
	// Names, of a directory: it may be listed; what lies below it is not mounted with it but asked about, as With.
	Names bool
	Errno unix.Errno // when denied; 0 means EACCES
}

// op is what a request is about to do with a gated object.
type op uint8

const (
	opLookup op = iota
	opBelow     // look a name up in it: the kernel holds its lock
	opStat
	opOpen
	opWrite
	opExec
	opList
	opAccess
	opReadlink
	opXattr
	opStatFs
	opSetAttr // the kernel holds its lock
	opCreate  // the kernel holds its lock
	opNew     // the object is to be made; the kernel holds its directory's lock
)

func (o op) String() string {
	return [...]string{"lookup", "lookup", "stat", "open", "write", "exec", "list", "access", "open", "xattr", "statfs", "write", "create", "create"}[o]
}

// locked: the kernel holds the object's inode lock, which a mount on it needs, so the reply must not wait for that mount.
func (o op) locked() bool {
	return o == opBelow || o == opSetAttr || o == opCreate
}

func (o op) writes() bool { return o == opWrite || o == opSetAttr || o == opCreate }

const (
	// denyHold is how long a denial stands for equal accesses without a new question. It carries the denial from the lookup
	// to the call it was for, and keeps a loop from asking as fast as it can.
	denyHold = time.Second
	// killPoll is how often an interrupted waiter is looked at. Interrupts themselves are ignored: EINTR would break
	// programs whose handlers are installed with SA_RESTART.
	killPoll = 50 * time.Millisecond
	// graftPatience ends the wait for a mount. The server cannot see whether a lookup holds the lock the mount needs; if one
	// does after all, ESTALE frees it and the kernel repeats the walk.
	graftPatience = 4 * time.Second
	// walkWindow is how long questions in one directory count towards Options.WalkLimit.
	walkWindow = 2 * time.Second
)

// question is one call of Ask and all who wait for it.
type question struct {
	done    chan struct{} // closed when code and allowed are set
	allowed bool
	once    bool
	code    fuse.Status
	waiters int
	cancel  context.CancelFunc
	after   decide.After // run when one of those who wait has its answer
	heard   bool         // Ask has returned
}

type denial struct {
	until time.Time
	code  fuse.Status
	many  bool // of the names in the directory
}

type walk struct {
	since time.Time
	n     int
}

// permission waits until the node is granted and mounted. It returns the covering grant, nil where the request alone was allowed, and
// whether there was a wait, or why not.
func (s *Server) permission(cancel <-chan struct{}, h *fuse.InHeader, n *node, o op) (g *grant, waited bool, code fuse.Status) {
	process, walking, denied := s.walks(path.Dir(n.path), h.Pid)
	for {
		g, q, put, code := s.gate.state(s, h, n, o, process, walking, denied)
		switch {
		case code != fuse.OK:
			return nil, waited, code
		case g != nil && g.settled():
			return g, waited, fuse.OK
		case g != nil && o.locked():
			if s.gate.sendBack(g, h.Pid, true) {
				return nil, true, errno(unix.ESTALE)
			}
			return g, true, fuse.OK // the walk, repeated, has led here: it begins in the directory that waits for its mount
		case g != nil:
			if code = s.wait(g.ready, cancel, h.Pid, graftPatience); code == errno(unix.ESTALE) && s.gate.late(g, h.Pid) {
				code = fuse.EACCES
			}
		default:
			if put != nil {
				s.gate.begin(put)
			}
			code = s.wait(q.done, cancel, h.Pid, 0)
			if s.gate.leave(q) {
				s.fuse.After(h, q.after.Run)
			}
			if code == fuse.OK && !q.allowed {
				code = q.code
			} else if code == fuse.OK && q.once {
				return nil, true, fuse.OK
			}
		}
		if code != fuse.OK {
			return nil, true, code
		}
		waited = true
	}
}

// state finds what stands for a path: a grant, a denial, or a question. If there was none it comes with the putting of it.
func (gt *gate) state(s *Server, h *fuse.InHeader, n *node, o op, process uint32, walking string, denied bool) (*grant, *question, func(park func()), fuse.Status) {
	gt.mu.Lock()
	defer gt.mu.Unlock()
	if g := gt.coversNode(n, o); g != nil && o != opNew {
		return g, nil, nil, fuse.OK
	}
	if d, ok := gt.refusal(n.path); ok {
		return nil, nil, nil, d.code
	}
	parent, top := path.Dir(n.path), path.Dir(n.path)
	if walking != "" {
		top = walking
	}
	with, above := gt.above(n.path, h.Pid, o)
	if s.opts.Ask == nil || denied && with == "" {
		return nil, nil, nil, fuse.EACCES
	}
	if gt.waiting >= gt.maxWaiting {
		return nil, nil, nil, fuse.EACCES
	}
	r := Request{typ: n.typ, process: process, fresh: o == opNew, PID: h.Pid, Op: o.String(), Path: n.path, Dir: n.typ == unix.S_IFDIR, Socket: n.typ == unix.S_IFSOCK}
	r.With, r.above = with, above
	q := gt.questions[r.key()]
	if q == nil && o != opNew && with == "" {
		if q = gt.questions[top+"/"]; q == nil && (gt.walked(parent) || walking != "") {
			r.Path, r.Dir, r.Many, r.typ = top, true, true, unix.S_IFDIR
		}
	}
	var put func(park func())
	if q == nil {
		if len(gt.questions) >= gt.maxQuestions && with == "" {
			return nil, nil, nil, fuse.EACCES
		}
		q, put = gt.put(s, r)
	}
	q.waiters++
	gt.waiting++
	return nil, q, put, fuse.OK
}

// walked counts a question about a name in dir and reports whether the directory should be the question instead.
func (gt *gate) walked(dir string) bool {
	now := time.Now()
	w := gt.walks[dir]
	if w == nil || now.Sub(w.since) > walkWindow {
		if len(gt.walks) > 256 {
			clear(gt.walks)
		}
		w = &walk{since: now}
		gt.walks[dir] = w
	}
	w.n++
	return w.n > gt.walkLimit
}

// key tells questions apart: listing a directory is another one than its names, and so is making a name.
func (r *Request) key() string {
	switch {
	case r.Many:
		return r.Path + "/"
	case r.fresh:
		return r.Path + "\x00"
	case r.With != "":
		return r.Path + "\x01"
	}
	return r.Path
}

// settle carries an answer out, up to the mount that it returns. gt.mu is held.
func (gt *gate) settle(s *Server, q *question, r Request, a Answer) *grant {
	if a.Path == "" {
		a.Path = r.Path
	}
	if a.Allow && !covers(a.Path, r.Path) {
		s.log.Printf("answer for %q grants %q: refused", r.Path, a.Path)
		a = Answer{}
	}
	if !a.Allow {
		q.code = fuse.EACCES
		if a.Errno != 0 {
			q.code = errno(a.Errno)
		}
		gt.refuse(r.Path, q.code, r.Many)
		if r.Many {
			gt.refuseWalker(walkerKey{r.Path, r.process})
		}
		return nil
	}
	q.allowed = true
	visit := r.above.once // of the walk that this belongs to
	if visit != nil && visit.over {
		q.allowed, q.code = false, fuse.EACCES
		return nil
	}
	if r.fresh || (a.Once || visit != nil) && !r.Dir && !r.Socket {
		q.once = true
		return nil
	}
	if r.With != "" {
		a.Mode = r.above.mode
	}
	fixed := gt.fixed(a.Path)
	if fixed || a.Names || a.Once && r.Many {
		// A skeleton cannot be mounted over, nor may what it hides come back: its names are granted one by one.
		if r.With == "" {
			visit = gt.open(s, r, a)
		}
		if r.Many {
			return nil
		}
	}
	if fixed {
		a.Path = r.Path
	}
	if visit != nil && gt.grants[a.Path] == nil {
		visit.mounted = append(visit.mounted, a.Path)
	}
	typ := r.typ
	if a.Path != r.Path {
		typ = unix.S_IFDIR
	}
	if a.Names {
		gt.names(a.Path)
		return nil
	}
	if g, fresh := gt.enter(a.Path, a.Mode, typ); fresh {
		return g
	}
	return nil
}

func (gt *gate) refuse(p string, code fuse.Status, many bool) {
	if len(gt.denials) > 1024 {
		clear(gt.denials)
	}
	gt.denials[p] = denial{until: time.Now().Add(denyHold), code: code, many: many}
}

// refusal finds a denial of the path, or of its directory when that was the question.
func (gt *gate) refusal(p string) (denial, bool) {
	now := time.Now()
	if d, ok := gt.denials[p]; ok && now.Before(d.until) {
		return d, true
	}
	d, ok := gt.denials[path.Dir(p)]
	return d, ok && d.many && now.Before(d.until)
}

// leave ends one wait, and says whether the question has been answered; the last one out withdraws it.
func (gt *gate) leave(q *question) (heard bool) {
	gt.mu.Lock()
	defer gt.mu.Unlock()
	gt.waiting--
	q.waiters--
	if q.waiters > 0 {
		return q.heard
	}
	select {
	case <-q.done:
	default:
		q.cancel()
		for p, other := range gt.questions {
			if other == q {
				delete(gt.questions, p)
			}
		}
	}
	return q.heard
}

// wait blocks a request until done is closed, its thread is killed, or limit (0: none) has passed.
func (s *Server) wait(done, cancel <-chan struct{}, pid uint32, limit time.Duration) fuse.Status {
	var tick, late <-chan time.Time
	if limit > 0 {
		t := time.NewTimer(limit)
		defer t.Stop()
		late = t.C
	}
	for {
		select {
		case <-done:
			return fuse.OK
		case <-s.closed.Done():
			return fuse.EACCES
		case <-late:
			return errno(unix.ESTALE)
		case <-cancel:
			cancel = nil
			if killed(pid) {
				return fuse.EINTR
			}
			t := time.NewTicker(killPoll)
			defer t.Stop()
			tick = t.C
		case <-tick:
			if killed(pid) {
				return fuse.EINTR
			}
		}
	}
}

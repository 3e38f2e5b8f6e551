package gatefs

import (
	"context"
	"path"
	"time"

	"golang.org/x/sys/unix"
	"sbx/broker/internal/gate/fuse"
)

// Ask puts a question and returns when it is answered. Ctx ends when nobody waits for the answer any more.
type Ask func(ctx context.Context, r Request) Answer

// Request is what a thread wants and does not get without an answer.
type Request struct {
	PID  uint32 // the thread, as the server's pid namespace knows it; 0 if it does not
	Op   string // lookup, stat, open, write, exec, list, access, xattr, statfs, create
	Path string
	Dir  bool
	// Socket: the object is a socket, which is connected to, not opened.
	Socket bool
	// Hidden: the object does not exist inside. Guarded: it is read-only by its name. Kept: something was to be made in
	// place of a hidden object. Only Options.Refused is told of such.
	Hidden, Guarded, Kept bool
	// Tree: what was to be made can be made only where the tree around it is granted for writing. Only
	// Options.Refused is told of it.
	Tree bool
	Why  error // Guarded: what Options.Check said, if it was asked
	// Walk is the directory above from which the process goes through what it has listed, "" if it does not.
	Walk string

	typ   uint32 // the object's
	asker asker
	fresh bool // Path does not exist yet: there is nothing to mount
}

// Answer says what is granted. Path is the file or tree to mount, the path asked about (also if empty) or a directory
// above it.
type Answer struct {
	Allow bool
	Path  string
	Mode  Mode
	// Once lets those who wait now do what they asked for, and mounts nothing: what they have open then stays theirs.
	// It is for files, and
	// for directories that are listed or changed themselves: a socket is of use only where it is mounted.
	Once bool
	// Names, of a directory: it may be listed; what lies below it is asked about.
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
	return [...]string{"lookup", "lookup", "stat", "open", "write", "exec", "list", "access", "open", "xattr", "statfs",
		"write", "create", "create"}[o]
}

// locked: the kernel holds the object's inode lock, which a mount on it needs, so the reply must not wait for that
// mount.
func (o op) locked() bool {
	return o == opBelow || o == opSetAttr || o == opCreate
}

func (o op) writes() bool { return o == opWrite || o == opSetAttr || o == opCreate }

const (
	// denyHold is how long a denial stands for equal accesses without a new question. It carries the denial from the
	// lookup to the call it was for, and keeps a loop from asking as fast as it can.
	denyHold = time.Second
	// killPoll is how often an interrupted waiter is looked at. Interrupts themselves are ignored: EINTR would break
	// programs whose handlers are installed with SA_RESTART.
	killPoll = 50 * time.Millisecond
	// graftPatience ends the wait for a mount. The server cannot see whether a lookup holds the lock the mount needs; if
	// one does after all, ESTALE frees it and the kernel repeats the walk.
	graftPatience = 4 * time.Second
)

// question is one call of Ask and all who wait for it.
type question struct {
	done    chan struct{} // closed when code and allowed are set
	allowed bool
	once    bool
	code    fuse.Status
	waiters int
	cancel  context.CancelFunc
}

type denial struct {
	until time.Time
	code  fuse.Status
}

// permission waits until the node is granted and mounted. It returns the covering grant, nil where the request alone
// was allowed, and whether there was a wait, or why not.
func (s *Server) permission(cancel <-chan struct{}, h *fuse.InHeader, n *node,
	o op) (g *grant, waited bool, code fuse.Status) {
	var from *asker // looked for when somebody has to be asked
	for {
		g, q, put, code := s.gate.state(s, h, n, o, from)
		switch {
		case g == nil && q == nil && code == fuse.OK:
			from = s.asker(path.Dir(n.path), h.Pid)
			continue
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
				go put()
			}
			code = s.wait(q.done, cancel, h.Pid, 0)
			s.gate.leave(q)
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

// state finds what stands for a path: a grant, a denial, or a question. If there was none it comes with the
// putting of it. Where it
// needs to know who asks, and does not, it finds nothing.
func (gt *gate) state(s *Server, h *fuse.InHeader, n *node, o op, from *asker) (
	*grant, *question, func(), fuse.Status) {
	gt.mu.Lock()
	defer gt.mu.Unlock()
	if g := gt.coversNode(n, o); g != nil && o != opNew {
		return g, nil, nil, fuse.OK
	}
	if s.opts.Ask == nil {
		return nil, nil, nil, fuse.EACCES
	}
	if from == nil {
		return nil, nil, nil, fuse.OK
	}
	r := Request{typ: n.typ, asker: *from, fresh: o == opNew, PID: h.Pid, Op: o.String(), Path: n.path,
		Dir: n.typ == unix.S_IFDIR, Socket: n.typ == unix.S_IFSOCK, Walk: from.walk}
	if d, ok := gt.refusal(&r); ok {
		return nil, nil, nil, d.code
	}
	if gt.waiting >= gt.maxWaiting {
		return nil, nil, nil, fuse.EACCES
	}
	q := gt.questions[r.key()]
	var put func()
	if q == nil {
		q, put = gt.put(s, r)
	}
	q.waiters++
	gt.waiting++
	return nil, q, put, fuse.OK
}

// questionKey tells questions apart: what one process is allowed once is no other's, and to read is not to write.
type questionKey struct {
	path    string
	right   string
	process process
}

func (r *Request) key() questionKey { return questionKey{r.Path, r.right(), r.asker.process} }

// right is what a request needs.
func (r *Request) right() string {
	switch r.Op {
	case opWrite.String(), opCreate.String():
		return "write"
	case opExec.String(), opList.String():
		return r.Op
	}
	return "read"
}

// denialKey is what a denial stands for: it is carried from a lookup to the call that the lookup was for.
type denialKey struct {
	path    string
	writes  bool
	process process // zero: nobody can have it
}

func (r *Request) denied() denialKey {
	return denialKey{r.Path, r.right() == "write", r.asker.process}
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
		gt.refuse(r.denied(), q.code)
		return nil
	}
	q.allowed = true
	// a skeleton cannot be mounted over, nor may what it hides come back: its names are granted one by one
	if gt.fixed(a.Path) {
		a.Path = r.Path
		a.Names = a.Names || gt.fixed(r.Path)
	}
	if q.once = r.fresh || a.Once; q.once && (a.Once || a.Path == r.Path) {
		return nil
	}
	typ := r.typ
	if a.Path != r.Path {
		typ = unix.S_IFDIR
	}
	if a.Names && a.Path == r.Path {
		gt.names(a.Path)
		return nil
	}
	if g, fresh := gt.enter(a.Path, a.Mode, typ); fresh {
		return g
	}
	return nil
}

func (gt *gate) refuse(k denialKey, code fuse.Status) {
	if len(gt.denials) > 1024 {
		clear(gt.denials)
	}
	gt.denials[k] = denial{until: time.Now().Add(denyHold), code: code}
}

// refusal finds a denial of what is asked for.
func (gt *gate) refusal(r *Request) (denial, bool) {
	now := time.Now()
	if d, ok := gt.denials[r.denied()]; ok && now.Before(d.until) {
		return d, true
	}
	for p := r.Path; len(gt.denials) > 0; p = path.Dir(p) { // what could not be mounted cannot be had below that either
		if d, ok := gt.denials[denialKey{path: p}]; ok && now.Before(d.until) {
			return d, true
		}
		if p == "/" {
			break
		}
	}
	return denial{}, false
}

// leave ends one wait; the last one out withdraws the question.
func (gt *gate) leave(q *question) {
	gt.mu.Lock()
	defer gt.mu.Unlock()
	gt.waiting--
	q.waiters--
	if q.waiters > 0 {
		return
	}
	select {
	case <-q.done:
	default:
		q.cancel()
		for k, other := range gt.questions {
			if other == q {
				delete(gt.questions, k)
			}
		}
	}
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

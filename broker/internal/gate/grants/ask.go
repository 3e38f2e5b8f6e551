//go:build linux

package grants

import (
	"context"
	"path"
	"time"

	"golang.org/x/sys/unix"
	"sbx.example/sbx/broker/internal/gate/fuse"
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
	Why  error // Guarded: what GuardPolicy.Check said, if it was asked
	// Empty: it was to be made with nothing in it, a directory or a file that only its maker makes. Only
	// Options.Refused is told of it.
	Empty bool
	// Walk is the directory above from which the process goes through what it has listed, "" if it does not.
	Walk string

	// New: a file or directory is to be made where nothing has the name. What somebody puts there first is not touched.
	New   bool
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
	// Searched: the tree was looked through for what may not be written before anybody went on. What comes there until
	// it is mounted is the session's own.
	Searched bool
	Errno    unix.Errno // when denied; 0 means EACCES
}

// Op is what a request is about to do with an object that is not granted.
type Op uint8

const (
	OpLookup Op = iota
	OpBelow     // look a name up in it: the kernel holds its lock
	OpStat
	OpOpen
	OpWrite
	OpExec
	OpList
	OpAccess
	OpReadlink
	OpXattr
	OpStatFs
	OpSetAttr // the kernel holds its lock
	OpCreate  // the kernel holds its lock
	OpNew     // the object is to be made; the kernel holds its directory's lock
	OpMake    // OpNew of a file or directory, which nothing but the call makes
)

func (o Op) String() string {
	return [...]string{"lookup", "lookup", "stat", "open", "write", "exec", "list", "access", "open", "xattr", "statfs",
		"write", "create", "create", "create"}[o]
}

// locked: the kernel holds the object's inode lock, which a mount on it needs, so the reply must not wait for that
// mount.
func (o Op) locked() bool {
	return o == OpBelow || o == OpSetAttr || o == OpCreate
}

func (o Op) makes() bool  { return o == OpNew || o == OpMake }
func (o Op) writes() bool { return o == OpWrite || o == OpSetAttr || o == OpCreate }

const (
	// DenyHold is how long a denial stands for equal accesses without a new question. It carries the denial from the
	// lookup to the call it was for, and keeps a loop from asking as fast as it can.
	DenyHold = time.Second
	// killPoll is how often an interrupted waiter is looked at. Interrupts themselves are ignored: EINTR would break
	// programs whose handlers are installed with SA_RESTART.
	killPoll = 50 * time.Millisecond
	// mountPatience ends the wait for a mount. The server cannot see whether a lookup holds the lock the mount needs; if
	// one does after all, ESTALE frees it and the kernel repeats the walk.
	mountPatience = 4 * time.Second
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

// Object is what a request is about: what has a path inside.
type Object struct {
	Path string
	Type uint32 // S_IFMT
}

// Permission waits until an object is granted and mounted. It returns the covering grant, nil where the request of the
// thread pid alone was allowed, and whether there was a wait, or why not.
func (gt *Gate) Permission(cancel <-chan struct{}, pid uint32, n Object,
	o Op) (g *Grant, waited bool, code fuse.Status) {
	var from *asker // looked for when somebody has to be asked
	for {
		g, q, put, code := gt.state(pid, n, o, from)
		switch {
		case g == nil && q == nil && code == fuse.OK:
			from = gt.asker(path.Dir(n.Path), pid)
			continue
		case code != fuse.OK:
			return nil, waited, code
		case g != nil && g.Ready():
			return g, waited, fuse.OK
		case g != nil && o.locked():
			if gt.SendBack(g, pid, true) {
				return nil, true, errno(unix.ESTALE)
			}
			return g, true, fuse.OK // the walk, repeated, has led here: it begins in the directory that waits for its mount
		case g != nil && o == OpLookup && g.path != n.Path:
			// The look-up of a name that is moved or removed holds the lock of its directory, on which the mount may be made.
			if gt.SendBack(g, pid, true) {
				return nil, true, errno(unix.ESTALE)
			}
			return g, false, fuse.OK
		case g != nil:
			if code = gt.wait(g.ready, cancel, pid, mountPatience); code == errno(unix.ESTALE) && gt.late(g, pid) {
				code = fuse.EACCES
			}
		default:
			if put != nil {
				go put()
			}
			code = gt.wait(q.done, cancel, pid, 0)
			gt.leave(q)
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

// state finds what stands for a path: a grant, a denial, or a question. If there was none it comes with the putting of
// it. Where it needs to know who asks, and does not, it finds nothing.
func (gt *Gate) state(pid uint32, n Object, o Op, from *asker) (
	*Grant, *question, func(), fuse.Status) {
	gt.mu.Lock()
	defer gt.mu.Unlock()
	if g := gt.covers(n, o); g != nil && !o.makes() {
		return g, nil, nil, fuse.OK
	}
	if gt.opts.Ask == nil {
		return nil, nil, nil, fuse.EACCES
	}
	if from == nil {
		return nil, nil, nil, fuse.OK
	}
	r := Request{typ: n.Type, asker: *from, fresh: o.makes(), New: o == OpMake, PID: pid, Op: o.String(), Path: n.Path,
		Dir: n.Type == unix.S_IFDIR, Socket: n.Type == unix.S_IFSOCK, Walk: from.walk}
	if d, ok := gt.refusal(&r); ok {
		return nil, nil, nil, d.code
	}
	if gt.waiting >= MaxWaiting {
		return nil, nil, nil, fuse.EACCES
	}
	q := gt.questions[r.key()]
	var put func()
	if q == nil {
		q, put = gt.newQuestion(r)
	}
	q.waiters++
	gt.waiting++
	return nil, q, put, fuse.OK
}

// questionKey tells questions apart: what one process is allowed once is no other's, to read is not to
// write, and to make a file is not to make a link.
type questionKey struct {
	path    string
	right   string
	makes   uint32 // S_IFMT of what is to be made, 0 for other requests: a link is no file
	process process
}

func (r *Request) key() questionKey {
	k := questionKey{path: r.Path, right: r.right(), process: r.asker.process}
	if r.New {
		k.makes = r.typ
	}
	return k
}

// right is what a request needs.
func (r *Request) right() string {
	switch r.Op {
	case OpWrite.String(), OpCreate.String():
		return "write"
	case OpExec.String(), OpList.String():
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

// carryOut carries an answer out, up to the mount that it returns. gt.mu is held.
func (gt *Gate) carryOut(q *question, r Request, a Answer) *Grant {
	if a.Path == "" {
		a.Path = r.Path
	}
	if a.Allow && !covers(a.Path, r.Path) {
		gt.opts.Log.Printf("answer for %q grants %q: refused", r.Path, a.Path)
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
	if gt.Fixed(a.Path) {
		a.Path = r.Path
		a.Names = a.Names || gt.Fixed(r.Path)
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
	g, fresh := gt.enter(a.Path, a.Mode, typ)
	if !fresh {
		return nil
	}
	g.searched = a.Searched
	return g
}

func (gt *Gate) refuse(k denialKey, code fuse.Status) {
	if len(gt.denials) > 1024 {
		clear(gt.denials)
	}
	gt.denials[k] = denial{until: time.Now().Add(DenyHold), code: code}
}

// refusal finds a denial of what is asked for.
func (gt *Gate) refusal(r *Request) (denial, bool) {
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
func (gt *Gate) leave(q *question) {
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
func (gt *Gate) wait(done, cancel <-chan struct{}, pid uint32, limit time.Duration) fuse.Status {
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
		case <-gt.opts.Over.Done():
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

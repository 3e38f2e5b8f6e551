//go:build linux

package notify

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path"
	"runtime"
	"strconv"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"sbx.example/sbx/broker/internal/gate/names"
	"sbx.example/sbx/broker/internal/program"
)

// request is a call that is worked on outside the loop.
type request struct {
	s     *server
	n     notif
	c     *call
	flags uint64
	names []name
	veil  bool // attributes show the type only
	blind bool // a name leads into a foreign file system that is granted
	made  bool // the file was made by this call: whatever it opens it for is allowed
	tries int  // see again
}

// maxTries bounds how often what is renamed under a call has it walk anew.
const maxTries = 8

// again walks anew and goes on with what is found, if it may. The caller is through with the call then.
func (r *request) again() bool {
	if r.tries == maxTries {
		return false
	}
	r.tries++
	if objects, ok := r.walk(); ok {
		defer closeAll(objects)
		r.gated(objects)
	}
	return true
}

// gone says whether an object's name leads to another one by now, or to none.
func (o *object) gone() bool {
	if o.fd < 0 || o.native || o.astray || o.whole {
		return false
	}
	is, err := names.IDAt(o.fd, "")
	at, gone := names.IDAt(unix.AT_FDCWD, o.path)
	return err == nil && (errors.Is(gone, unix.ENOENT) || gone == nil && at != is)
}

// slow hands a call on. A call that finds no room for its walk is walked here: a wait, not a refusal, since most such
// calls turn out to be of no interest.
func (s *server) slow(n *notif, c *call, flags uint64, names []name, again bool) {
	r := &request{s: s, n: *n, c: c, flags: flags}
	for _, nm := range names {
		nm.path, nm.full = bytes.Clone(nm.path), bytes.Clone(nm.full)
		r.names = append(r.names, nm)
	}
	select {
	case s.cold <- struct{}{}:
		s.work.Go(func() { r.resolve(again, func() { <-s.cold }) })
		// The caller reads next, and a thread that sleeps in the kernel keeps what is to run after it waiting.
		runtime.Gosched()
	default:
		r.resolve(again, nil)
	}
}

// resolve walks the names and answers, or asks. release gives the place in the queue of walks back before a question
// is asked; without it the caller is the loop, which must not wait for one.
func (r *request) resolve(again bool, release func()) {
	s := r.s
	objects, ok := []*object(nil), false
	r.uncover()
	if again && s.foreign() == nil && r.passes() {
		s.pass(r.n.id)
	} else {
		objects, ok = r.walk()
	}
	if release != nil {
		release()
	}
	if !ok {
		return
	}
	ask := func() {
		defer closeAll(objects)
		r.gated(objects)
	}
	if release != nil { // this goroutine may wait
		select {
		case s.asks <- struct{}{}:
			defer func() { <-s.asks }()
			ask()
			return
		default:
		}
	}
	if release != nil || !s.spawn(s.asks, ask) {
		path := objects[0].decided()
		closeAll(objects)
		s.refuse(&r.n, r.op(objects[0]), path, unix.EACCES, "too many questions are open")
	}
}

// foreign is nil where there are none.
func (s *server) foreign() Foreign {
	if s.Foreign == nil || s.Grafter == nil || !s.Foreign.Any() {
		return nil
	}
	return s.Foreign
}

// passes repeats the loop's look, this time waiting for the disk.
func (r *request) passes() bool {
	sc, _ := r.s.scratches.Get().(*scratch)
	if sc == nil {
		sc = new(scratch)
	}
	defer r.s.scratches.Put(sc)
	for i := range r.names {
		nm := &r.names[i]
		v := r.s.look(&r.n, nm, 0, sc)
		if nm.path[0] != '/' {
			nm.full = bytes.Clone(nm.full) // it was put together in the memory that is given back
		}
		if v != passes {
			return false
		}
	}
	return true
}

func closeAll(objects []*object) {
	for _, o := range objects {
		o.close()
	}
}

// walk returns the gated objects that a call names; if there are none it has answered.
func (r *request) walk() ([]*object, bool) {
	s := r.s
	root := s.root.Load()
	if same, err := root.same(r.n.pid); err != nil {
		s.refuse(&r.n, r.c.op, "", unix.EACCES, "the caller's root cannot be looked at")
		return nil, false
	} else if !same {
		s.pass(r.n.id)
		return nil, false
	}
	var found []*object
	for i := range r.names {
		out, o, errno := r.walkName(i)
		switch out {
		case denied:
			closeAll(found)
			s.refuse(&r.n, r.op(nil), string(r.names[i].path[:len(r.names[i].path)-1]), errno, "the path is never granted")
			return nil, false
		case gated:
			found = append(found, o)
		case nothing:
			if r.c.kind != kindDrop && (r.c.kind != kindMove || i != 0) {
				continue
			}
			// What is to be moved or removed does not exist. The kernel says so, and why, but of a directory of the sandbox's
			// own: that it is read-only, before it looks for a name there.
			if closeAll(found); r.inOwn(i) {
				s.fail(r.n.id, unix.ENOENT)
			} else {
				s.pass(r.n.id)
			}
			return nil, false
		}
	}
	if len(found) == 0 && r.c.kind == kindExec && s.Grafter != nil && !r.blind {
		if o := r.interpreter(); o != nil {
			found = append(found, o)
		}
	}
	if len(found) == 0 {
		s.pass(r.n.id)
		return nil, false
	}
	if !idValid(s.fd, r.n.id) {
		closeAll(found)
		return nil, false
	}
	return found, true
}

func (r *request) walkName(i int) (outcome, *object, syscall.Errno) {
	s, nm := r.s, &r.names[i]
	root := s.root.Load()
	p, astray := string(nm.path[:len(nm.path)-1]), false
	if p[0] != '/' {
		base := root.base(r.n.pid, nm.dir, s.foreign())
		if base == "" {
			return inside, nil, 0
		}
		astray = s.Grafter != nil && s.Grafter.Placed() && s.covered(root, r.n.pid, nm.dir, []byte(base))
		p = base + "/" + p
	}
	w := walker{astray: astray, root: root, view: s.View, rights: rights{s.caps}, make: r.makes(i), look: r.look(),
		foreign: s.foreign()}
	if s.Grafter != nil && s.Grafter.Placed() {
		w.grafter, w.files = s.Grafter, &s.files
	}
	out, o := w.walk(p, nm.nofollow)
	r.blind = r.blind || w.blind
	return out, o, w.refusal
}

// inOwn says whether name i is missing in a directory that the sandbox had from the start, or that asks: the sandbox
// has no more than a place for that.
func (r *request) inOwn(i int) bool {
	full := r.names[i].full
	if r.s.Grafter == nil || len(full) == 0 {
		return false
	}
	p := string(full[:len(full)-1])
	dir := path.Dir(p)
	if path.Clean(p) != p || r.s.Grafter.Own(dir) {
		return path.Clean(p) == p
	}
	var st unix.Stat_t
	return r.s.View.Gated(p) && !r.s.Grafter.Granted(dir) && unix.Lstat(p, &st) == unix.ENOENT
}

// makes says whether name i may be new.
func (r *request) makes(i int) bool {
	switch r.c.kind {
	case kindOpen:
		return r.flags&unix.O_CREAT != 0
	case kindMake:
		return true
	case kindMove:
		return i == 1
	}
	return false
}

// op names what is asked.
func (r *request) op(o *object) string {
	if r.c.kind != kindOpen {
		return r.c.op
	}
	switch {
	case o != nil && o.fd < 0, r.flags&unix.O_TMPFILE == unix.O_TMPFILE,
		r.flags&(unix.O_CREAT|unix.O_EXCL) == unix.O_CREAT|unix.O_EXCL:
		return "create"
	case r.flags&unix.O_PATH != 0:
		return "open-read"
	case r.flags&unix.O_ACCMODE != unix.O_RDONLY || r.flags&unix.O_TRUNC != 0:
		return "open-write"
	}
	return "open-read"
}

// question describes a request to whoever decides.
func (r *request) question(o *object, op string) Ask {
	proc := "/proc/" + strconv.FormatUint(uint64(r.n.pid), 10)
	a := Ask{PID: r.n.pid, Op: op, Path: o.decided(), Flags: r.flags, Dir: o.typ == unix.S_IFDIR}
	a.Write = r.c != nil && r.changes(o, op)
	a.Exe = program.Of(int(r.n.pid))
	a.Cwd, _ = os.Readlink(proc + "/cwd")
	if len(r.names) > 0 {
		a.Asked = string(r.names[0].path[:len(r.names[0].path)-1])
	}
	if o.native && !o.astray {
		a.Target = o.path
	}
	if o.fd >= 0 && !o.whole {
		var st unix.Stat_t
		if unix.Fstat(o.fd, &st) == nil {
			a.Nlink, a.Dev, a.Ino = uint64(st.Nlink), uint64(st.Dev), st.Ino
		}
		r.s.makings.ReadStable(func() { a.Ours = r.s.makings.Has(a.Path, o.fd) })
		if o.typ == unix.S_IFLNK {
			var buf [maxPath]byte
			if k, err := unix.Readlinkat(o.fd, "", buf[:]); err == nil {
				a.Target = string(buf[:k])
			}
		}
	}
	return a
}

// ask waits for an answer. false: the caller is gone, or the pid was somebody else's when it was looked at.
func (s *server) ask(n *notif, a Ask) (Answer, bool) {
	if !idValid(s.fd, n.id) {
		return Answer{}, false
	}
	if s.Ask == nil || s.closed.Load() {
		return Answer{}, true
	}
	ctx, cancel := context.WithCancel(s.ctx)
	defer cancel()
	defer s.withdraw(n.id, cancel)()
	answer := s.Ask(ctx, a)
	if ctx.Err() != nil {
		answer = Answer{}
	}
	return answer, idValid(s.fd, n.id)
}

// lookEvery is how often a caller that waits for an answer is looked at: nobody tells us that it was killed.
const lookEvery = 50 * time.Millisecond

// withdraw calls gone once the caller does not wait any more, until the function that it returns is called.
func (s *server) withdraw(id uint64, gone func()) (stop func()) {
	var mu sync.Mutex
	var timer *time.Timer
	mu.Lock()
	timer = time.AfterFunc(lookEvery, func() {
		if !idValid(s.fd, id) {
			gone()
			return
		}
		mu.Lock()
		defer mu.Unlock()
		if timer != nil {
			timer.Reset(lookEvery)
		}
	})
	mu.Unlock()
	return func() {
		mu.Lock()
		defer mu.Unlock()
		timer.Stop()
		timer = nil
	}
}

//go:build linux

package gatefs

import (
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"sbx.example/sbx/broker/internal/gate/names"
	"sbx.example/sbx/broker/internal/gate/nodes"
	"sbx.example/sbx/broker/internal/inotify"
)

// The kernel tells those who watch a directory of what is done through it, not of what the host does behind it. So
// somebody in the sandbox, whom its processes do not know, does the same again, by a name in this file system; that is
// answered by what stands in repeated.go, and nothing is done.

// maxRepeats bounds what waits to be repeated. What comes on top of that is lost, but for the last thing that happens
// to a name.
const maxRepeats = 1 << 16

// pairFor is how long the second half of a move is waited for.
const pairFor = 2 * time.Millisecond

// repeat is a Repeat as the server knows it.
type repeat struct {
	what          names.Happening
	typ           uint32
	dir, to       *nodes.Node
	name, toName  string
	node, instead *nodes.Node // what had the name, and the one it was moved to; nil if the kernel knew nothing of it
	cookie        uint32      // of a move whose second half has not come yet
}

// repeats is what waits.
type repeats struct {
	mu     sync.Mutex
	begun  bool
	list   []repeat
	wake   chan struct{}
	now    atomic.Pointer[repeat] // what is being done
	failed sync.Once
	away   *nodes.Node // see elsewhere
}

// add notes what the host has done, unless nobody inside may know of it.
func (q *repeats) add(s *Server, dir *nodes.Node, e inotify.Event, c *nodes.Node) {
	if s.opts.Repeat == nil || e.Name == "" {
		return
	}
	const left = unix.IN_DELETE | unix.IN_MOVED_TO
	if c != nil && e.Mask&left != 0 && names.Is(dir.FD, e.Name, c.Key.ID) { // it has come since
		if e.Mask&unix.IN_ISDIR != 0 {
			return // to repeat what happened to the name would be its end for those who are in it
		}
		c = nil
	}
	r := repeat{dir: dir, name: e.Name, node: c}
	if e.Mask&unix.IN_ISDIR != 0 {
		r.typ = unix.S_IFDIR
	}
	switch gone := e.Mask&(unix.IN_DELETE|unix.IN_MOVED_FROM) != 0; {
	case gone && c == nil && s.mayHide(dir, e.Name), !gone && s.hides(dir, e.Name):
		return
	case e.Mask&unix.IN_MOVED_TO != 0:
		if q.pair(&r, e.Cookie) {
			return
		}
		r = repeat{what: names.Moved, typ: names.Type(dir.FD, e.Name), dir: q.elsewhere(s), name: anything, to: dir,
			toName: e.Name, instead: c}
	case e.Mask&unix.IN_MOVED_FROM != 0:
		r.what, r.to, r.toName, r.cookie = names.Moved, q.elsewhere(s), anything, e.Cookie
	case gone:
		r.what = names.Removed
	case e.Mask&unix.IN_CREATE != 0:
		r.what = names.Made
	case e.Mask&unix.IN_MODIFY != 0:
		r.what = names.Modified
	case e.Mask&unix.IN_CLOSE_WRITE != 0:
		r.what = names.Written
	case e.Mask&unix.IN_ATTRIB != 0:
		r.what = names.Attributes
	}
	q.put(s, r)
}

// elsewhere is a directory that nobody inside can look for: where what comes from or goes to a directory is that is not
// watched.
const (
	elsewhere = names.Reserved + "elsewhere"
	anything  = "anything"
)

func (q *repeats) elsewhere(s *Server) *nodes.Node {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.away == nil {
		q.away = s.nodes.Nowhere(s.nodes.Get(nodes.RootID), elsewhere)
	}
	return q.away
}

// mayHide says whether what had a name may have been hidden.
func (s *Server) mayHide(dir *nodes.Node, name string) bool {
	v := s.verdict(dir, name)
	return hidden(v) || v.Secret != nil
}

// pair makes a move of a name that has gone and one that has come.
func (q *repeats) pair(r *repeat, cookie uint32) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	for i := len(q.list) - 1; i >= 0 && i > len(q.list)-8; i-- {
		o := &q.list[i]
		if o.cookie != 0 && o.cookie == cookie {
			o.to, o.toName, o.instead, o.cookie = r.dir, r.name, r.node, 0
			return true
		}
	}
	return false
}

func (q *repeats) put(s *Server, r repeat) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if !q.begun {
		q.begun, q.wake = true, make(chan struct{}, 1)
		go q.work(s)
	}
	if n := len(q.list); n >= maxRepeats || n > 0 && q.list[n-1] == r {
		return
	}
	q.list = append(q.list, r)
	select {
	case q.wake <- struct{}{}:
	default:
	}
}

// review repeats what may have happened to a name, where the host has lost count.
func (q *repeats) review(s *Server, dir *nodes.Node, name string, c *nodes.Node) {
	if s.opts.Repeat == nil || s.hides(dir, name) {
		return
	}
	var st unix.Stat_t
	r := repeat{what: names.Modified, typ: c.Type, dir: dir, name: name, node: c}
	if names.Stat(dir.FD, name, &st) != nil {
		r.what = names.Removed
	}
	q.put(s, r)
}

func (q *repeats) work(s *Server) {
	for {
		select {
		case <-s.closed.Done():
			return
		case <-q.wake:
		}
		for r, ok := q.next(); ok; r, ok = q.next() {
			q.do(s, r)
		}
	}
}

// next takes the first, and gives the second half of a move a moment to come.
func (q *repeats) next() (repeat, bool) {
	for waited := false; ; waited = true {
		q.mu.Lock()
		n := len(q.list)
		if n == 0 {
			q.list = nil
			q.mu.Unlock()
			return repeat{}, false
		}
		r := q.list[0]
		if waited || n > 8 || r.cookie == 0 {
			q.list = q.list[1:]
			q.mu.Unlock()
			return r, true
		}
		q.mu.Unlock()
		time.Sleep(pairFor)
	}
}

// do has one thing done. The kernel is to ask for the names that come and go: by itself it does so where a directory is
// to be made or moved to, and for one that has gone it soon does. To make it forget a directory would be to take that
// from those who are in it, with what is mounted there.
func (q *repeats) do(s *Server, r repeat) {
	if typ := names.Type(r.dir.FD, r.name); r.what == names.Made && r.typ != unix.S_IFDIR && typ != 0 {
		r.typ = typ
	}
	if r.dir == q.away || r.to == q.away {
		s.fuse.EntryNotify(nodes.RootID, elsewhere)
	}
	if r.typ != unix.S_IFDIR && (r.what == names.Made || r.what == names.Removed || r.what == names.Moved) {
		s.fuse.EntryExpire(r.dir.ID, r.name)
	}
	out := names.Repeat{What: r.what, Type: r.typ, Dir: s.relative(r.dir), Name: r.name}
	if r.what == names.Moved {
		if r.typ != unix.S_IFDIR {
			s.fuse.EntryExpire(r.to.ID, r.toName)
		}
		out.ToDir, out.ToName = s.relative(r.to), r.toName
	}
	q.now.Store(&r)
	err := s.opts.Repeat(out)
	q.now.Store(nil)
	switch {
	case errors.Is(err, unix.EBUSY) && r.what == names.Moved && r.dir != q.away && r.to != q.away:
		r.node, r.to, r.toName, r.instead = nil, q.elsewhere(s), anything, nil // who is where it went to stays there
		q.do(s, r)
	case errors.Is(err, unix.ETXTBSY) && r.what == names.Written: // what runs inside cannot be opened to be closed
		r.what = names.Modified
		q.do(s, r)
	case err != nil && !names.Outrun(err):
		q.failed.Do(func() {
			s.log.Printf("who watches %q inside does not hear of what happens outside: %v", s.opts.Root, err)
		})
	}
}

func (s *Server) relative(n *nodes.Node) string {
	if rel := strings.TrimPrefix(s.nodes.Where(n), "/"); rel != "" {
		return rel
	}
	return "."
}

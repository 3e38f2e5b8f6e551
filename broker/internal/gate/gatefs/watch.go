//go:build linux

package gatefs

import (
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"sbx.example/sbx/broker/internal/gate/fuse"
	"sbx.example/sbx/broker/internal/gate/names"
	"sbx.example/sbx/broker/internal/gate/nodes"
	"sbx.example/sbx/broker/internal/inotify"
)

const (
	// reliedOn is how long the kernel may rely on the name and attributes of a file in a directory whose changes the host
	// reports. What is not reported (a second name elsewhere, a mapping that stays open) is noticed after that.
	reliedOn = 5 * time.Second
	followed = unix.IN_CREATE | unix.IN_MODIFY | unix.IN_ATTRIB | unix.IN_CLOSE_WRITE | unix.IN_MOVED_FROM |
		unix.IN_MOVED_TO | unix.IN_DELETE

	maxWatches, maxSeen, maxDoubted = 4096, 16384, 1024 // the last of a directory
	// A burst of changes, most of which the sandbox makes itself, is taken together.
	followPause = time.Millisecond
)

// watches are the guarded directories that the host tells about, so that a file that does not change costs no request,
// and that who watches inside hears of what happens outside. They begin with the first directory that is looked at
// after the start.
type watches struct {
	mu    sync.Mutex
	begun bool
	fd    int // inotify; -1 where there is none
	file  *os.File
	byWd  map[int32]*watch
	of    map[*nodes.Node]*watch // nil for a directory that cannot be watched
	count int                    // names in all seen maps
	own   inotify.Own[*nodes.Node]
	told  bool     // that there are more directories than are watched
	moved struct { // what has left a name last, for the one that it gets
		cookie uint32
		node   *nodes.Node
	}
}

// watch is one such directory.
type watch struct {
	wd      int32
	dir     *nodes.Node
	gen     uint64                 // changes so far: what was looked at before one of them is not relied on
	seen    map[string]*nodes.Node // what the kernel knows by its names; it relies on some of it
	doubted map[string]bool        // names that led to another file when one was opened: none of them is relied on again
	reports bool                   // its file system reports every change
}

// watch begins to follow a directory, and says how many changes it has seen.
func (s *Server) watch(n *nodes.Node) (*watch, uint64) {
	if !s.serving.Load() && s.opts.Repeat == nil {
		return nil, 0
	}
	at := s.nodes.Where(n)
	w := &s.watches
	w.mu.Lock()
	defer w.mu.Unlock()
	if s.opts.Covered[at] {
		return nil, 0
	}
	d, ok := w.of[n]
	if !ok {
		if !w.begun {
			w.begin(s)
		}
		d = s.addWatch(n)
		w.of[n] = d
	}
	if d == nil {
		return nil, 0
	}
	return d, d.gen
}

// unmounted notes that nothing is mounted on a directory any more.
func (s *Server) unmounted(dir string) {
	s.watches.mu.Lock()
	defer s.watches.mu.Unlock()
	delete(s.opts.Covered, dir)
}

func (w *watches) begin(s *Server) {
	w.begun, w.of, w.byWd = true, make(map[*nodes.Node]*watch), make(map[int32]*watch)
	var err error
	if w.fd, err = unix.InotifyInit1(unix.IN_NONBLOCK | unix.IN_CLOEXEC); err != nil || s.closed.Err() != nil {
		unix.Close(w.fd)
		w.fd = -1
		return
	}
	w.file = os.NewFile(uintptr(w.fd), "inotify")
	go s.follow(w.file)
}

// addWatch is called with s.watches.mu held.
func (s *Server) addWatch(n *nodes.Node) *watch {
	w := &s.watches
	var fs unix.Statfs_t
	if w.fd < 0 || unix.Fstatfs(n.FD, &fs) != nil {
		return nil
	}
	full := len(w.byWd) >= maxWatches
	wd, err := -1, error(unix.ENOSPC)
	if !full { // a directory that is a node already, under other rules, is left to that one
		wd, err = unix.InotifyAddWatch(w.fd, names.FdPath(n.FD), followed|unix.IN_ONLYDIR|unix.IN_MASK_CREATE)
	}
	if err == unix.ENOSPC && !w.told {
		w.told = true
		s.log.Printf("%q and further directories are not watched: who watches them inside does not hear of what happens "+
			"outside", s.nodes.Where(n))
	}
	if err != nil {
		return nil
	}
	d := &watch{wd: int32(wd), dir: n, seen: make(map[string]*nodes.Node), reports: inotify.Reports(fs.Type)}
	w.byWd[d.wd] = d
	return d
}

// saw notes what the kernel is told of a name that was looked at when d had seen gen changes, and says whether it may
// rely on that.
func (s *Server) saw(d *watch, gen uint64, name string, c *nodes.Node) bool {
	if d == nil {
		return false
	}
	w := &s.watches
	w.mu.Lock()
	defer w.mu.Unlock()
	old := d.seen[name]
	if w.of[d.dir] != d || old == nil && w.count >= maxSeen {
		return false
	}
	if old == nil {
		w.count++
	}
	d.seen[name] = c
	// A rename onto a checked name leaves the kernel with the wrong file under it: no name beside it is relied on.
	if d.gen != gen || c.Type != unix.S_IFREG || c.Lent.Load() || !d.reports || d.dir.Zone.Checks() || d.doubted[name] {
		return false
	}
	c.EverRelied.Store(true)
	c.Relied.Store(true)
	return true
}

// leave ends the watch of a directory that the kernel has forgotten.
func (w *watches) leave(n *nodes.Node) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if d := w.of[n]; d != nil {
		w.drop(d)
		_, _ = unix.InotifyRmWatch(w.fd, uint32(d.wd)) // gone with the directory, perhaps
	}
	delete(w.of, n)
}

func (w *watches) drop(d *watch) {
	for _, c := range d.seen {
		c.Relied.Store(false)
	}
	w.count -= len(d.seen)
	clear(d.seen)
	delete(w.byWd, d.wd)
	w.of[d.dir] = nil
}

func (w *watches) close() {
	w.mu.Lock()
	fd, file := w.fd, w.file
	w.begun, w.fd, w.file = true, -1, nil
	if w.of == nil {
		w.of = make(map[*nodes.Node]*watch)
	}
	w.mu.Unlock() // who reads takes it, and to close waits for him
	if file != nil {
		_ = inotify.Close(fd, file.Close)
	}
}

// follow passes changes on to the kernel. It has a goroutine of its own: forgetting a name waits for whoever holds the
// directory, who may wait for an answer of this server's.
func (s *Server) follow(f *os.File) {
	buf := make([]byte, inotify.Room)
	for {
		n, at, err := s.watches.own.Wait(f, &s.watches.mu, buf)
		if err != nil {
			return
		}
		for e := range inotify.Events(buf[:n]) {
			s.changed(e, at+uint64(e.End))
		}
		time.Sleep(followPause)
	}
}

// changed follows one event, which ends at a place of all that was reported.
func (s *Server) changed(e inotify.Event, end uint64) {
	if e.Mask&unix.IN_Q_OVERFLOW != 0 {
		s.doubt()
		return
	}
	w := &s.watches
	w.mu.Lock()
	d := w.byWd[e.Watch]
	if d == nil {
		w.mu.Unlock()
		return
	}
	d.gen++
	if e.Mask&unix.IN_IGNORED != 0 { // the directory is no more
		w.drop(d)
		w.mu.Unlock()
		return
	}
	c := d.seen[e.Name]
	gone := e.Mask&(unix.IN_MOVED_FROM|unix.IN_MOVED_TO|unix.IN_DELETE) != 0
	if gone {
		w.follows(d, e, c)
	}
	mine := w.own.Take(d.dir, e.Name, e.Mask&^unix.IN_ISDIR, end)
	w.mu.Unlock()
	switch {
	case c != nil && !gone && s.forgetContents(c, e.Mask) == fuse.OK:
	// Also a name that nobody relied on may have come by with what the kernel knew of another name.
	case (c != nil || e.Mask&unix.IN_MOVED_TO != 0) && e.Mask&unix.IN_ISDIR == 0:
		s.fuse.EntryExpire(d.dir.ID, e.Name)
	}
	if gone || e.Mask&unix.IN_CREATE != 0 {
		s.fuse.InodeNotify(d.dir.ID)
	}
	if e.Name == "" && e.Mask&unix.IN_ATTRIB != 0 || e.Name == "HEAD" { // see holds
		s.expireNames(d)
	}
	if !mine {
		s.repeats.add(s, d.dir, e, c)
	}
}

// expireNames makes the kernel ask for the names that it relies on in a directory which perhaps nobody may enter any
// more: it does not look at a directory's mode by itself.
func (s *Server) expireNames(d *watch) {
	var relied []string
	s.watches.mu.Lock()
	for name, c := range d.seen {
		if c.Relied.Load() {
			relied = append(relied, name)
		}
	}
	s.watches.mu.Unlock()
	for _, name := range relied {
		s.fuse.EntryExpire(d.dir.ID, name)
	}
}

// follows notes that a name has another object, or none. w.mu is held.
func (w *watches) follows(d *watch, e inotify.Event, c *nodes.Node) {
	if c != nil {
		delete(d.seen, e.Name)
		w.count--
		c.Relied.Store(false)
	}
	switch {
	case e.Mask&unix.IN_MOVED_FROM != 0:
		w.moved.cookie, w.moved.node = e.Cookie, c
	case e.Mask&unix.IN_MOVED_TO != 0 && w.moved.node != nil && w.moved.cookie == e.Cookie:
		d.seen[e.Name] = w.moved.node
		w.count++
	}
}

// forgetContents makes the kernel ask for the attributes, and where a file was written also for what is mapped of it.
func (s *Server) forgetContents(c *nodes.Node, mask uint32) fuse.Status {
	if c.Type == unix.S_IFREG && mask&(unix.IN_MODIFY|unix.IN_CLOSE_WRITE) != 0 {
		return s.fuse.PagesNotify(c.ID)
	}
	return s.fuse.InodeNotify(c.ID)
}

// doubt makes the kernel forget all that it relies on: more has changed than could be told.
func (s *Server) doubt() {
	type entry struct {
		dir, file *nodes.Node
		name      string
	}
	var all []entry
	w := &s.watches
	w.mu.Lock()
	for _, d := range w.byWd {
		d.gen++
		for name, c := range d.seen {
			all = append(all, entry{d.dir, c, name})
			c.Relied.Store(false)
		}
		clear(d.seen)
	}
	w.count = 0
	w.mu.Unlock()
	for _, e := range all {
		s.fuse.PagesNotify(e.file.ID)
		if e.file.Type != unix.S_IFDIR { // for that the kernel soon asks by itself, see dirValid
			s.fuse.EntryExpire(e.dir.ID, e.name)
		}
		s.repeats.review(s, e.dir, e.name, e.file)
	}
}

// noteTold notes what the kernel is told of a file that it relies on.
func (s *Server) noteTold(n *nodes.Node, st *unix.Stat_t) {
	if n.EverRelied.Load() {
		s.nodes.Tell(n, nodes.Signature{Size: st.Size, ModTime: st.Mtim, ChangeTime: st.Ctim})
	}
}

// current reports whether the name by which the kernel has come to a file still leads to it, and makes the kernel ask
// for attributes that have changed since it was told. It goes by what the kernel was ever told: that this is over comes
// to its knowledge later than to this server's. A name is doubted once: what is reached through a descriptor has none.
func (s *Server) current(n *nodes.Node, fd int) bool {
	if !n.EverRelied.Load() {
		return true
	}
	var st unix.Stat_t
	if unix.Fstat(fd, &st) != nil {
		return true
	}
	if s.nodes.Told(n) != (nodes.Signature{Size: st.Size, ModTime: st.Mtim, ChangeTime: st.Ctim}) {
		s.fuse.InodeNotify(n.ID)
	}
	dir, name := s.nodes.SeenAt(n)
	if dir < 0 || names.Stat(dir, name, &st) == nil && st.Dev == n.Key.Dev && st.Ino == n.Key.Ino ||
		n.Doubted.Swap(true) {
		return true
	}
	s.watches.doubt(s.nodes.NameOf(n))
	return false
}

// doubt has a name asked for each time from now on. The kernel looks it up again, once: if it relied on what it finds
// then, a file that is replaced again and again could not be opened.
func (w *watches) doubt(dir *nodes.Node, name string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if d := w.of[dir]; d != nil && len(d.doubted) < maxDoubted {
		if d.doubted == nil {
			d.doubted = make(map[string]bool)
		}
		d.doubted[name] = true
	}
}

// What this server does on the host for somebody inside, the host reports as well. The kernel has told those who watch
// inside already.

// expect is called before something is done to a name, and what it returns afterwards.
func (s *Server) expect(n *nodes.Node, name string, masks ...uint32) func() {
	if s.opts.Repeat == nil || n == nil {
		return func() {}
	}
	w := &s.watches
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.of[n] == nil && !w.own.Has(n, name, masks) {
		return func() {}
	}
	w.own.Begin(n, name, masks)
	return func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.own.End(w.fd, n, name, masks)
	}
}

// expectAt is expect for an object, by the name it has once it is expected.
func (s *Server) expectAt(c *nodes.Node, masks ...uint32) func() {
	for {
		parent, name := s.nodes.NameOf(c)
		end := s.expect(parent, name, masks...)
		if p, n := s.nodes.NameOf(c); p == parent && n == name {
			return end
		}
		end()
	}
}

// renamed are events of a file that come with the name it has by then. The kernel releases a file after close(2) has
// returned, and so perhaps while the file is renamed.
var renamed = [...]uint32{unix.IN_CLOSE_WRITE, unix.IN_MODIFY, unix.IN_ATTRIB}

// expectRename is expect for both names of a rename.
func (s *Server) expectRename(m move) func() {
	w := &s.watches
	w.mu.Lock()
	same := s.opts.Repeat != nil && (w.of[m.from] != nil || w.of[m.to] != nil)
	if same {
		w.own.Same(m.from, m.oldName, m.to, m.newName, renamed[:])
	}
	w.mu.Unlock()
	from := s.expect(m.from, m.oldName, unix.IN_MOVED_FROM, unix.IN_MOVED_TO, unix.IN_DELETE)
	to := s.expect(m.to, m.newName, unix.IN_MOVED_TO, unix.IN_MOVED_FROM, unix.IN_CREATE, unix.IN_ATTRIB)
	return func() {
		from()
		to()
		if w.mu.Lock(); same {
			w.own.End(w.fd, m.from, m.oldName, renamed[:])
		}
		w.mu.Unlock()
	}
}

//go:build linux

package askfs

import (
	"context"
	"log"
	"path"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"sbx.example/sbx/broker/internal/gate/fuse"
	"sbx.example/sbx/broker/internal/gate/grants"
	"sbx.example/sbx/broker/internal/gate/names"
	"sbx.example/sbx/broker/internal/guard"
)

// Place is something that is hidden: a directory with all below it, or a file.
type Place struct {
	Host string // its path on the host, without links
	// Made are directories below it that the sandbox has itself, by their paths in it: they are there without a question.
	Made []string
	// No is how what nobody has said yes to is refused.
	No unix.Errno
	// File: Host is a file, and Data of Mode is in its place for whoever has no yes.
	File bool
	Data []byte
	Mode uint32
}

// Options are what a Server needs.
type Options struct {
	Owner  fuse.Owner // of all that is shown; nobody else opens it
	Places []Place    // their names in the root are their numbers
	// Ready is a name in the root that whoever builds the sandbox looks up when that is done. Until then nobody is asked.
	Ready string
	Ask   grants.Ask
	// Hidden says whether what has a path is never shown, whatever anybody says. Told: somebody named it.
	Hidden func(pid uint32, path string, st *unix.Stat_t, told bool) bool
	// Config says whether what has a path is a repository's configuration, which is read without its credentials.
	Config func(path string) bool
	// Outside is the process that the file system knows as pid; 0: it is gone.
	Outside func(pid uint32) uint32
	Log     *log.Logger
}

// Server is the file system.
type Server struct {
	fuse.ReadOnly
	Grants *grants.Gate // what was asked and granted, by the host's paths
	opts   Options
	fuse   *fuse.Server
	places []*place
	over   context.Context
	end    context.CancelFunc
	ready  atomic.Bool

	mu      sync.Mutex
	nodes   map[uint64]*node
	byKey   map[key]*node
	last    uint64
	files   fuse.Handles[*handle]
	refused map[string]bool
}

type place struct {
	Place
	number int
	top    int // the host's root
	made   map[string]bool
	data   int // a file with Data
	since  unix.Timespec
}

// New answers the kernel's first message on fd, which it owns from then on.
func New(fd int, o Options) (*Server, error) {
	s, err := newServer(o)
	if err != nil {
		unix.Close(fd)
		return nil, err
	}
	s.fuse, err = fuse.New(fd, s, &s.opts.Owner.Uid)
	return s, err
}

func newServer(o Options) (*Server, error) {
	s := &Server{opts: o, nodes: map[uint64]*node{}, byKey: map[key]*node{}, last: fuse.FUSE_ROOT_ID,
		refused: map[string]bool{}}
	s.over, s.end = context.WithCancel(context.Background())
	s.Grants = grants.New(grants.Options{Ask: s.ask, Mounter: shown{}, Forget: func(string) error { return nil },
		Over: s.over, Log: o.Log})
	for i, p := range o.Places {
		x, err := open(i, p)
		if err != nil {
			return nil, err
		}
		s.places = append(s.places, x)
	}
	return s, nil
}

// open prepares a place.
func open(number int, p Place) (*place, error) {
	x := &place{Place: p, number: number, data: -1, made: map[string]bool{}}
	_ = unix.ClockGettime(unix.CLOCK_REALTIME, &x.since)
	for _, m := range p.Made {
		x.made[m] = true
	}
	var err error
	if x.top, err = unix.Open("/", unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0); err != nil || !p.File {
		return x, err
	}
	if x.data, err = unix.MemfdCreate("data", unix.MFD_CLOEXEC); err == nil {
		_, err = unix.Pwrite(x.data, p.Data, 0)
	}
	return x, err
}

// Serve answers until the last mount is gone.
func (s *Server) Serve() { s.fuse.Serve() }

// End refuses what waits.
func (s *Server) End() { s.end() }

// shown is the mounter of the grants: nothing is mounted.
type shown struct{}

func (shown) Graft(string, grants.Mode, uint32, bool) error { return grants.ErrServe }
func (shown) Revoke(string) error                           { return nil }

// ask puts a question. The kernel remembers what is missing, so a no stays one.
func (s *Server) ask(ctx context.Context, r grants.Request) grants.Answer {
	a := s.opts.Ask(ctx, r)
	if !a.Allow && ctx.Err() == nil {
		s.mu.Lock()
		s.refused[r.Path] = true
		s.mu.Unlock()
	}
	return a
}

// allowed waits until somebody has said whether what has a path is shown.
func (s *Server) allowed(cancel <-chan struct{}, h *fuse.InHeader, p *place, o grants.Object,
	op grants.Op) fuse.Status {
	if g := s.Grants.Find(o, op); g != nil && g.Ready() {
		return fuse.OK
	}
	s.mu.Lock()
	refused := s.refused[o.Path]
	s.mu.Unlock()
	if refused {
		return fuse.Status(p.No)
	}
	_, _, code := s.Grants.Permission(cancel, s.opts.Outside(h.Pid), o, op)
	if code != fuse.OK && code != fuse.EINTR && code != fuse.Status(unix.ESTALE) {
		code = fuse.Status(p.No)
	}
	return code
}

// node is a name that the kernel knows or has known. It keeps its number whatever the host puts in its place: an
// overlay that has known another one calls it stale for ever.
type node struct {
	key
	id    uint64
	place *place
	looks uint64
	seen  guard.ID // what it was when it was looked up last
}

// key tells nodes apart.
type key struct {
	place int
	rel   string // in the place; "" is the place itself
	typ   uint32
	// own: the sandbox has it itself, or it is a place. It is there without a question.
	own bool
}

// path is what the node shows, on the host.
func (n *node) path() string { return n.place.path(n.rel) }

func (p *place) path(rel string) string { return path.Join(p.Host, rel) }

func (n *node) object() grants.Object { return grants.Object{Path: n.path(), Type: n.typ} }

func (s *Server) node(id uint64) *node {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.nodes[id]
}

// hold opens what has that very path on the host at this moment: no link leads there, and in the place no other mount.
func (p *place) hold(rel string) (fd int, st unix.Stat_t, err error) {
	if fd, err = names.HoldBeneath(p.top, "."+p.Host); err != nil {
		return -1, st, err
	}
	if rel != "" {
		dir := fd
		fd, err = names.OpenBeneath(dir, rel, unix.O_PATH|unix.O_NOFOLLOW, 0, unix.RESOLVE_NO_XDEV)
		unix.Close(dir)
		if err != nil {
			return -1, st, err
		}
	}
	if err = unix.Fstat(fd, &st); err != nil {
		unix.Close(fd)
		return -1, st, err
	}
	switch st.Mode & unix.S_IFMT {
	case unix.S_IFREG, unix.S_IFDIR, unix.S_IFLNK:
		return fd, st, nil
	}
	unix.Close(fd) // what is connected to is not read
	return -1, st, unix.ENOENT
}

// again opens what a node is now.
func (n *node) again() (fd int, st unix.Stat_t, code fuse.Status) {
	fd, st, err := n.place.hold(n.rel)
	if err == nil && st.Mode&unix.S_IFMT != n.typ {
		unix.Close(fd)
		err = unix.ESTALE
	}
	return fd, st, fuse.ToStatus(err)
}

// forever is how long the kernel may rely on what the sandbox has itself: something may be mounted on it.
const forever = 365 * 24 * time.Hour

// enter tells the kernel of a node, which it looks up again at the next walk.
func (s *Server) enter(p *place, k key, id guard.ID, st *unix.Stat_t, out *fuse.EntryOut) {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := s.byKey[k]
	if n == nil {
		s.last++
		n = &node{key: k, id: s.last, place: p}
		s.nodes[n.id], s.byKey[k] = n, n
	}
	n.looks++
	n.seen = id
	out.NodeId = n.id
	s.fill(st, &out.Attr)
	if n.own {
		out.SetEntryTimeout(forever)
	}
}

// known says whether the kernel has looked up that very object at a node. What it does with it is asked about by then,
// and the sandbox may have a copy of its own in front of it, about which nobody is to be asked.
func (s *Server) known(k key, id guard.ID) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := s.byKey[k]
	return n != nil && n.looks > 0 && n.seen == id
}

// Forget is called when the kernel does not know a node any more.
func (s *Server) Forget(id, count uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if n := s.nodes[id]; n != nil {
		n.looks -= min(count, n.looks)
	}
}

// fill describes what is shown. Whether the user may read it the host decides, when it is opened.
func (s *Server) fill(st *unix.Stat_t, out *fuse.Attr) {
	out.Of(st)
	out.Mode, out.Owner = names.VisibleMode(st.Mode), s.opts.Owner
}

// Lookup finds a name.
func (s *Server) Lookup(cancel <-chan struct{}, h *fuse.InHeader, name string, out *fuse.EntryOut) fuse.Status {
	if h.NodeId == fuse.FUSE_ROOT_ID {
		return s.lookupPlace(name, out)
	}
	n := s.node(h.NodeId)
	switch {
	case n == nil:
		return fuse.Status(unix.ESTALE)
	case n.typ != unix.S_IFDIR:
		return fuse.ENOTDIR
	case !guard.ValidName(name):
		return fuse.ENOENT
	}
	p, rel := n.place, path.Join(n.rel, name)
	fd, st, err := p.hold(rel)
	if err != nil {
		return fuse.ENOENT
	}
	defer unix.Close(fd)
	id, err := names.ID(fd)
	if err != nil {
		return fuse.ENOENT
	}
	k := key{place: p.number, rel: rel, typ: st.Mode & unix.S_IFMT}
	switch {
	case p.made[rel] && k.typ == unix.S_IFDIR:
		k.own = true
		s.enter(p, k, id, &st, out)
		return fuse.OK
	case !s.ready.Load():
		return fuse.ENOENT // whoever builds makes what he needs
	case s.opts.Hidden(h.Pid, p.path(rel), &st, true):
		return fuse.Status(p.No)
	}
	code := fuse.OK
	if !s.known(k, id) {
		code = s.allowed(cancel, h, p, grants.Object{Path: p.path(rel), Type: k.typ}, grants.OpStat)
	}
	if code == fuse.OK {
		s.enter(p, k, id, &st, out)
	}
	return code
}

func (s *Server) lookupPlace(name string, out *fuse.EntryOut) fuse.Status {
	if name == s.opts.Ready {
		s.ready.Store(true)
		return fuse.ENOENT
	}
	i, err := strconv.Atoi(name)
	if err != nil || i < 0 || i >= len(s.places) {
		return fuse.ENOENT
	}
	p := s.places[i]
	st := unix.Stat_t{Mode: unix.S_IFDIR | 0o755, Nlink: 2}
	if p.File {
		st = p.blank()
	}
	s.enter(p, key{place: i, typ: st.Mode & unix.S_IFMT, own: true}, guard.ID{}, &st, out)
	return fuse.OK
}

// blank is what a hidden file is for whoever has no yes.
func (p *place) blank() unix.Stat_t {
	return unix.Stat_t{Mode: unix.S_IFREG | p.Mode, Nlink: 1, Size: int64(len(p.Data)), Blksize: 4096, Atim: p.since,
		Mtim: p.since, Ctim: p.since}
}

// GetAttr answers stat and fstat.
func (s *Server) GetAttr(cancel <-chan struct{}, in *fuse.GetAttrIn, out *fuse.AttrOut) fuse.Status {
	if in.Flags()&fuse.FUSE_GETATTR_FH != 0 {
		if f := s.files.Get(in.Fh()); f != nil {
			var st unix.Stat_t
			if err := unix.Fstat(f.fd, &st); err != nil {
				return fuse.ToStatus(err)
			}
			if f.blank {
				st = f.node.place.blank()
			}
			s.fill(&st, &out.Attr)
			return fuse.OK
		}
	}
	st := unix.Stat_t{Mode: unix.S_IFDIR | 0o755, Nlink: 2}
	n := s.node(in.NodeId)
	switch {
	case in.NodeId == fuse.FUSE_ROOT_ID:
	case n == nil:
		return fuse.Status(unix.ESTALE)
	case n.place.File && s.Grants.Find(n.object(), grants.OpStat) == nil:
		st = n.place.blank()
	default:
		fd, is, code := n.again()
		switch {
		case code == fuse.OK:
			unix.Close(fd)
		case n.own: // it is there all the same
			s.fill(&st, &out.Attr)
			return fuse.OK
		default:
			return code
		}
		if st = is; !n.own && !s.opened(n) {
			if code = s.allowed(cancel, &in.InHeader, n.place, n.object(), grants.OpStat); code != fuse.OK {
				return code
			}
		}
	}
	s.fill(&st, &out.Attr)
	return fuse.OK
}

// Readlink says where a link leads that was looked up.
func (s *Server) Readlink(cancel <-chan struct{}, h *fuse.InHeader) ([]byte, fuse.Status) {
	n := s.node(h.NodeId)
	if n == nil {
		return nil, fuse.Status(unix.ESTALE)
	}
	fd, _, code := n.again()
	if code != fuse.OK {
		return nil, code
	}
	defer unix.Close(fd)
	if code = s.allowed(cancel, h, n.place, n.object(), grants.OpReadlink); code != fuse.OK {
		return nil, code
	}
	target, err := names.Readlink(fd, "")
	return []byte(target), fuse.ToStatus(err)
}

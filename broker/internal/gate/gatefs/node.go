//go:build linux

package gatefs

import (
	"sync"
	"sync/atomic"

	"golang.org/x/sys/unix"
	"sbx.example/sbx/broker/internal/gate/fuse"
	"sbx.example/sbx/broker/internal/gate/names"
	"sbx.example/sbx/broker/internal/guard"
)

type nodeKind uint8

const (
	static nodeKind = iota // a directory of the tree
	gated                  // known by its path; asks, or is granted
	loop                   // an object of a guarded directory, known by its inode
)

// node is what the kernel knows by a number. A static or gated node's number is a function of its path, because the
// kernel detaches what is mounted on a name whose number changes; that of a loopback node, and of what is kept as
// itself, follows its inode, because two files that share a number share a page cache. Numbers are never used for
// anything else later.
type node struct {
	id   uint64
	kind nodeKind
	typ  uint32 // S_IFMT
	ro   bool   // loop: named by a Guard or Check rule, or below one
	text bool   // loop: named by a Text rule
	own  bool   // gated: see Server.keep
	// static, loop and what is kept as itself (Server.keep): the host object, O_PATH; -1 where there is none, and where it
	// is opened for each request
	fd   int
	path string       // static and gated
	dir  *dir         // static
	zone *guard.Place // guarded directories
	key  loopKey
	// gated: the static directory whose fd its host path starts from. Static: the same of a skeleton that the host lacks
	base *node
	rel  string
	// loop: where it was last seen, to name it in a callback. Guarded by table.mu.
	parent *node
	name   string

	looks uint64 // references the kernel holds; guarded by table.mu
	sig   signature
	// relied is set while the kernel relies on the file, once when it ever did, and doubted while it does not rely on the
	// name by which it was looked up last. toldOf is what the kernel was told last, guarded by table.mu.
	relied, once, doubted atomic.Bool
	lent                  atomic.Bool // see Server.lent
	toldOf                signature
}

// loopKey has the policy in it, so that a host file linked under a guarded and a plain name is two nodes.
type loopKey struct {
	guard.ID // of a directory; a file's is without its birth
	zone     *guard.Place
	ro, text bool
	mode     bool   // ro, but its permissions may be changed: git tries its configuration for that
	config   bool   // a repository's configuration: it is shown without its credentials
	ghost    uint64 // of what the host has no more
}

// signature is what the page cache was filled from. Guarded by table.mu.
type signature struct {
	size         int64
	mtime, ctime unix.Timespec
	calm         bool // the file had not changed for a while when this was taken
}

const rootID = fuse.FUSE_ROOT_ID

type table struct {
	mu    sync.RWMutex
	byID  map[uint64]*node
	byKey map[loopKey]*node
	next  uint64
	held  int // nodes with a descriptor, but for static ones
	paths names.Numbers
}

func (t *table) init() {
	t.byID = make(map[uint64]*node)
	t.byKey = make(map[loopKey]*node)
	t.next = rootID + 1
	t.paths.Init()
}

func (t *table) get(id uint64) *node {
	t.mu.RLock()
	n := t.byID[id]
	t.mu.RUnlock()
	return n
}

// find is the loopback node of a key that the kernel knows, or nil.
func (t *table) find(key loopKey) *node {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return t.byKey[key]
}

// pathID is the number of a path-known node.
func (t *table) pathID(path string, typ uint32, target string) uint64 {
	if path == "/" {
		return rootID
	}
	return t.paths.Of(path, typ, target)
}

// known reports whether the kernel holds a reference to the number.
func (t *table) known(id uint64) bool {
	t.mu.RLock()
	defer t.mu.RUnlock()
	n := t.byID[id]
	return n != nil && n.looks > 0
}

// keep counts a reference to a path-known node, entering it first if needed. It returns nil if another path has the
// number.
func (t *table) keep(n *node) *node {
	t.mu.Lock()
	defer t.mu.Unlock()
	if old := t.byID[n.id]; old != nil {
		if n.kind == gated && n.fd >= 0 {
			unix.Close(n.fd)
		}
		if old.path != n.path {
			return nil
		}
		n = old
	} else {
		if n.fd >= 0 {
			t.held++
		}
		t.byID[n.id] = n
	}
	n.looks++
	return n
}

// has says whether the kernel has the loopback node of a key, and looked it up by that name last.
func (t *table) has(key loopKey, parent *node, name string) bool {
	t.mu.RLock()
	defer t.mu.RUnlock()
	n := t.byKey[key]
	return n != nil && n.looks > 0 && n.parent == parent && n.name == name
}

// hold enters a loopback node that owns fd, or closes fd and counts a reference to the one that is there. When most
// nodes hold a descriptor, a new one gets none, but for a directory and a configuration, of which a copy may be open.
func (t *table) hold(key loopKey, fd int, typ uint32, parent *node, name string, most int) *node {
	t.mu.Lock()
	defer t.mu.Unlock()
	n := t.byKey[key]
	if n != nil {
		unix.Close(fd)
	} else {
		n = &node{id: t.next, kind: loop, typ: typ, ro: key.ro, text: key.text, fd: fd, zone: key.zone, key: key}
		t.next++
		if t.held >= most && typ != unix.S_IFDIR && !key.config {
			unix.Close(fd)
			n.fd = -1
		} else {
			t.held++
		}
		t.byID[n.id], t.byKey[key] = n, n
	}
	n.looks++
	n.parent, n.name = parent, name
	return n
}

// forget gives references back, and returns a node that is no more; the kernel does not use the number again until a
// reply gives it out anew.
func (t *table) forget(id, count uint64) (gone *node) {
	t.mu.Lock()
	defer t.mu.Unlock()
	n := t.byID[id]
	if n == nil {
		return nil
	}
	n.looks -= min(count, n.looks)
	if n.looks > 0 || n.kind == static {
		return nil
	}
	delete(t.byID, id)
	if n.kind == loop {
		delete(t.byKey, n.key)
	}
	if n.fd >= 0 {
		t.held--
		unix.Close(n.fd)
	}
	return n
}

// seenAt is where a loopback node was last seen: a directory's descriptor and the name in it. It returns -1 if the
// directory is not known any more.
func (t *table) seenAt(n *node) (dir int, name string) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	if n.parent == nil || n.parent.kind != static && t.byID[n.parent.id] != n.parent {
		return -1, ""
	}
	return n.parent.fd, n.name
}

// nameOf is where a node was last seen, as the server knows it.
func (t *table) nameOf(n *node) (dir *node, name string) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return n.parent, n.name
}

// moved notes that the host object of a key has a new place.
func (t *table) moved(key loopKey, parent *node, name string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if n := t.byKey[key]; n != nil {
		n.parent, n.name = parent, name
	}
}

// where is the inside path of a node, as far as the server has followed it.
func (t *table) where(n *node) string {
	top, rel := t.below(n)
	if top.path == "/" && rel != "" {
		return rel
	}
	return top.path + rel
}

// below is the directory of the tree that a node was found below, and the way from there.
func (t *table) below(n *node) (top *node, rel string) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	for n.kind == loop && n.parent != nil {
		n, rel = n.parent, "/"+n.name+rel
	}
	return n, rel
}

func (t *table) closeAll() {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, n := range t.byID {
		if n.fd >= 0 {
			unix.Close(n.fd)
			n.fd = -1
		}
	}
}

// Forget is called by the kernel when it drops names from its cache.
func (s *Server) Forget(id, count uint64) {
	if n := s.nodes.forget(id, count); n != nil && n.typ == unix.S_IFDIR {
		s.watches.leave(n)
	}
}

// pruneBatch is how many entries the kernel is asked to drop at a time.
const pruneBatch = 1024

func (s *Server) full() bool {
	s.nodes.mu.RLock()
	defer s.nodes.mu.RUnlock()
	return s.nodes.held > s.nofile
}

// pruneIfFull asks the kernel to forget some files when their descriptors near the process's limit. The notices take
// directory locks that requests may hold, so they are sent from a goroutine of their own.
func (s *Server) pruneIfFull() {
	if !s.full() || !s.pruning.TryLock() {
		return
	}
	type entry struct {
		parent uint64
		name   string
	}
	var drop []entry
	s.nodes.mu.RLock()
	for _, n := range s.nodes.byKey {
		if n.typ != unix.S_IFDIR && n.parent != nil && n.fd >= 0 {
			drop = append(drop, entry{n.parent.id, n.name})
		}
		if len(drop) == pruneBatch {
			break
		}
	}
	s.nodes.mu.RUnlock()
	go func() {
		defer s.pruning.Unlock()
		for _, e := range drop {
			if s.fuse.EntryNotify(e.parent, e.name) == fuse.ENOSYS {
				return
			}
		}
	}()
}

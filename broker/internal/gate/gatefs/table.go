//go:build linux

package gatefs

import (
	"sync"

	"golang.org/x/sys/unix"
	"sbx.example/sbx/broker/internal/gate/fuse"
	"sbx.example/sbx/broker/internal/gate/names"
	"sbx.example/sbx/broker/internal/guard"
)

const rootID = fuse.FUSE_ROOT_ID

// entry is a name in a directory that the kernel knows.
type entry struct {
	parent uint64
	name   string
}

// table has the nodes that the kernel knows. Nobody else takes its lock or changes what that guards.
type table struct {
	mu    sync.RWMutex
	byID  map[uint64]*node
	byKey map[loopKey]*node
	next  uint64
	held  int // nodes with a descriptor, but for static ones
	most  int // of which files get no more
	paths names.Numbers
}

// init makes the table, which is to hold about so many descriptors.
func (t *table) init(most int) {
	t.most = most
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

// renew has a directory that is made at a path get another number than the one that was there.
func (t *table) renew(path string) { t.paths.Renew(path) }

// plant enters a static node, which stays.
func (t *table) plant(n *node) {
	t.mu.Lock()
	defer t.mu.Unlock()
	n.looks++
	t.byID[n.id] = n
}

// replace puts a static node into the place of the one that has its number.
func (t *table) replace(n *node) {
	t.mu.Lock()
	defer t.mu.Unlock()
	n.looks = t.byID[n.id].looks
	t.byID[n.id] = n
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
func (t *table) hold(key loopKey, fd int, typ uint32, parent *node, name string) *node {
	t.mu.Lock()
	defer t.mu.Unlock()
	n := t.byKey[key]
	if n != nil {
		unix.Close(fd)
	} else {
		n = &node{id: t.next, kind: loop, typ: typ, ro: key.ro, text: key.text, fd: fd, zone: key.zone, key: key}
		t.next++
		if t.held >= t.most && typ != unix.S_IFDIR && !key.config {
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

// standIn counts a reference to a node, or to one that nobody knows where the kernel has forgotten it, or it is nil.
func (t *table) standIn(n *node, typ uint32) *node {
	t.mu.Lock()
	defer t.mu.Unlock()
	if n == nil || t.byID[n.id] != n {
		n = t.ghost(typ)
	}
	n.looks++
	return n
}

// nowhere enters a directory that the host does not have, and which stays.
func (t *table) nowhere(parent *node, name string) *node {
	t.mu.Lock()
	defer t.mu.Unlock()
	n := t.ghost(unix.S_IFDIR)
	n.looks, n.parent, n.name = 1, parent, name
	return n
}

// ghost makes a node of what the host does not have. t.mu is held.
func (t *table) ghost(typ uint32) *node {
	if typ == 0 {
		typ = unix.S_IFREG
	}
	n := &node{id: t.next, kind: loop, typ: typ, fd: -1, key: loopKey{ghost: t.next}}
	t.next++
	t.byID[n.id], t.byKey[n.key] = n, n
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

// directories are the nodes that are one directory of the host, inside guarded ones.
func (t *table) directories(id guard.ID) (list []*node) {
	t.mu.RLock() // nobody closes their descriptors meanwhile
	defer t.mu.RUnlock()
	for _, n := range t.byID {
		if n.zone == nil || n.fd < 0 {
			continue
		}
		if own, err := names.ID(n.fd); err == nil && own == id {
			list = append(list, n)
		}
	}
	return list
}

// filled notes what the page cache of a node is filled from, and returns from what it was.
func (t *table) filled(n *node, now signature) (before signature) {
	t.mu.Lock()
	defer t.mu.Unlock()
	before, n.sig = n.sig, now
	return before
}

// tell notes what the kernel is told of a node; told is what it was told last.
func (t *table) tell(n *node, now signature) {
	t.mu.Lock()
	defer t.mu.Unlock()
	n.toldOf = now
}

func (t *table) told(n *node) signature {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return n.toldOf
}

// full says whether more descriptors are held than should be.
func (t *table) full() bool {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return t.held > t.most
}

// holding names some files that hold a descriptor.
func (t *table) holding(most int) (list []entry) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	for _, n := range t.byKey {
		if n.typ != unix.S_IFDIR && n.parent != nil && n.fd >= 0 {
			list = append(list, entry{n.parent.id, n.name})
		}
		if len(list) == most {
			break
		}
	}
	return list
}

// closeAll closes all descriptors.
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

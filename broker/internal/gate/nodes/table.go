//go:build linux

package nodes

import (
	"sync"

	"golang.org/x/sys/unix"
	"sbx.example/sbx/broker/internal/gate/fuse"
	"sbx.example/sbx/broker/internal/gate/names"
	"sbx.example/sbx/broker/internal/guard"
)

// RootID is the number of the root.
const RootID = fuse.FUSE_ROOT_ID

// Entry is a name in a directory that the kernel knows.
type Entry struct {
	Parent uint64
	Name   string
}

// Table has the nodes that the kernel knows. Init makes it.
type Table struct {
	mu    sync.RWMutex
	byID  map[uint64]*Node
	byKey map[Key]*Node
	next  uint64
	held  int // nodes with a descriptor, but for static ones
	paths names.Numbers
	// Most is how many nodes may hold a descriptor. A file beyond them gets none.
	Most int
}

// Init makes the table, which is to hold about so many descriptors.
func (t *Table) Init(most int) {
	t.Most = most
	t.byID = make(map[uint64]*Node)
	t.byKey = make(map[Key]*Node)
	t.next = RootID + 1
	t.paths.Init()
}

// Get is the node with a number, or nil.
func (t *Table) Get(id uint64) *Node {
	t.mu.RLock()
	n := t.byID[id]
	t.mu.RUnlock()
	return n
}

// Find is the loopback node of a key that the kernel knows, or nil.
func (t *Table) Find(key Key) *Node {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return t.byKey[key]
}

// PathID is the number of a path-known node.
func (t *Table) PathID(path string, typ uint32, target string) uint64 {
	if path == "/" {
		return RootID
	}
	return t.paths.Of(path, typ, target)
}

// Known reports whether the kernel holds a reference to the number.
func (t *Table) Known(id uint64) bool {
	t.mu.RLock()
	defer t.mu.RUnlock()
	n := t.byID[id]
	return n != nil && n.looks > 0
}

// Renew has a directory that is made at a path get another number than the one that was there.
func (t *Table) Renew(path string) { t.paths.Renew(path) }

// Plant enters a static node, which stays.
func (t *Table) Plant(n *Node) {
	t.mu.Lock()
	defer t.mu.Unlock()
	n.looks++
	t.byID[n.ID] = n
}

// Replace puts a static node into the place of the one that has its number.
func (t *Table) Replace(n *Node) {
	t.mu.Lock()
	defer t.mu.Unlock()
	n.looks = t.byID[n.ID].looks
	t.byID[n.ID] = n
}

// Keep counts a reference to a path-known node, entering it first if needed. It returns nil if another path has the
// number.
func (t *Table) Keep(n *Node) *Node {
	t.mu.Lock()
	defer t.mu.Unlock()
	if old := t.byID[n.ID]; old != nil {
		if n.Kind == Gated && n.FD >= 0 {
			unix.Close(n.FD)
		}
		if old.Path != n.Path {
			return nil
		}
		n = old
	} else {
		if n.FD >= 0 {
			t.held++
		}
		t.byID[n.ID] = n
	}
	n.looks++
	return n
}

// Has says whether the kernel has the loopback node of a key, and looked it up by that name last.
func (t *Table) Has(key Key, parent *Node, name string) bool {
	t.mu.RLock()
	defer t.mu.RUnlock()
	n := t.byKey[key]
	return n != nil && n.looks > 0 && n.parent == parent && n.name == name
}

// Hold enters a loopback node that owns fd, or closes fd and counts a reference to the one that is there. When most
// nodes hold a descriptor, a new one gets none, but for a directory and a configuration, of which a copy may be open.
func (t *Table) Hold(key Key, fd int, typ uint32, parent *Node, name string) *Node {
	t.mu.Lock()
	defer t.mu.Unlock()
	n := t.byKey[key]
	if n != nil {
		unix.Close(fd)
	} else {
		n = &Node{ID: t.next, Kind: Loop, Type: typ, ReadOnly: key.ReadOnly, Text: key.Text, FD: fd, Zone: key.Zone,
			Key: key}
		t.next++
		if t.held >= t.Most && typ != unix.S_IFDIR && !key.Config {
			unix.Close(fd)
			n.FD = -1
		} else {
			t.held++
		}
		t.byID[n.ID], t.byKey[key] = n, n
	}
	n.looks++
	n.parent, n.name = parent, name
	return n
}

// StandIn counts a reference to a node, or to one that nobody knows where the kernel has forgotten it, or it is nil.
func (t *Table) StandIn(n *Node, typ uint32) *Node {
	t.mu.Lock()
	defer t.mu.Unlock()
	if n == nil || t.byID[n.ID] != n {
		n = t.ghost(typ)
	}
	n.looks++
	return n
}

// Nowhere enters a directory that the host does not have, and which stays.
func (t *Table) Nowhere(parent *Node, name string) *Node {
	t.mu.Lock()
	defer t.mu.Unlock()
	n := t.ghost(unix.S_IFDIR)
	n.looks, n.parent, n.name = 1, parent, name
	return n
}

// ghost makes a node of what the host does not have. t.mu is held.
func (t *Table) ghost(typ uint32) *Node {
	if typ == 0 {
		typ = unix.S_IFREG
	}
	n := &Node{ID: t.next, Kind: Loop, Type: typ, FD: -1, Key: Key{ghost: t.next}}
	t.next++
	t.byID[n.ID], t.byKey[n.Key] = n, n
	return n
}

// Forget gives references back, and returns a node that is no more; the kernel does not use the number again until a
// reply gives it out anew.
func (t *Table) Forget(id, count uint64) (gone *Node) {
	t.mu.Lock()
	defer t.mu.Unlock()
	n := t.byID[id]
	if n == nil {
		return nil
	}
	n.looks -= min(count, n.looks)
	if n.looks > 0 || n.Kind == Static {
		return nil
	}
	delete(t.byID, id)
	if n.Kind == Loop {
		delete(t.byKey, n.Key)
	}
	if n.FD >= 0 {
		t.held--
		unix.Close(n.FD)
	}
	return n
}

// SeenAt is where a loopback node was last seen: a directory's descriptor and the name in it. It returns -1 if the
// directory is not known any more.
func (t *Table) SeenAt(n *Node) (dir int, name string) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	if n.parent == nil || n.parent.Kind != Static && t.byID[n.parent.ID] != n.parent {
		return -1, ""
	}
	return n.parent.FD, n.name
}

// NameOf is where a node was last seen, as the server knows it.
func (t *Table) NameOf(n *Node) (dir *Node, name string) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return n.parent, n.name
}

// Moved notes that the host object of a key has a new place.
func (t *Table) Moved(key Key, parent *Node, name string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if n := t.byKey[key]; n != nil {
		n.parent, n.name = parent, name
	}
}

// Where is the inside path of a node, as far as the server has followed it.
func (t *Table) Where(n *Node) string {
	top, rel := t.Below(n)
	if top.Path == "/" && rel != "" {
		return rel
	}
	return top.Path + rel
}

// Below is the directory of the tree that a node was found below, and the way from there.
func (t *Table) Below(n *Node) (top *Node, rel string) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	for n.Kind == Loop && n.parent != nil {
		n, rel = n.parent, "/"+n.name+rel
	}
	return n, rel
}

// Directories are the nodes that are one directory of the host, inside guarded ones.
func (t *Table) Directories(id guard.ID) (list []*Node) {
	t.mu.RLock() // nobody closes their descriptors meanwhile
	defer t.mu.RUnlock()
	for _, n := range t.byID {
		if n.Zone == nil || n.FD < 0 {
			continue
		}
		if own, err := names.ID(n.FD); err == nil && own == id {
			list = append(list, n)
		}
	}
	return list
}

// Filled notes what the page cache of a node is filled from, and returns from what it was.
func (t *Table) Filled(n *Node, now Signature) (before Signature) {
	t.mu.Lock()
	defer t.mu.Unlock()
	before, n.filled = n.filled, now
	return before
}

// Tell notes what the kernel is told of a node.
func (t *Table) Tell(n *Node, now Signature) {
	t.mu.Lock()
	defer t.mu.Unlock()
	n.told = now
}

// Told is what the kernel was told of a node last.
func (t *Table) Told(n *Node) Signature {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return n.told
}

// Full says whether more descriptors are held than should be.
func (t *Table) Full() bool {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return t.held > t.Most
}

// Holding names some files that hold a descriptor.
func (t *Table) Holding(most int) (list []Entry) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	for _, n := range t.byKey {
		if n.Type != unix.S_IFDIR && n.parent != nil && n.FD >= 0 {
			list = append(list, Entry{n.parent.ID, n.name})
		}
		if len(list) == most {
			break
		}
	}
	return list
}

// Close closes all descriptors.
func (t *Table) Close() {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, n := range t.byID {
		if n.FD >= 0 {
			unix.Close(n.FD)
			n.FD = -1
		}
	}
}

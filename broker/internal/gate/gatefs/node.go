//go:build linux

package gatefs

import (
	"sync/atomic"

	"golang.org/x/sys/unix"
	"sbx.example/sbx/broker/internal/gate/fuse"
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

// Forget is called by the kernel when it drops names from its cache.
func (s *Server) Forget(id, count uint64) {
	if n := s.nodes.forget(id, count); n != nil && n.typ == unix.S_IFDIR {
		s.watches.leave(n)
	}
}

// pruneBatch is how many entries the kernel is asked to drop at a time.
const pruneBatch = 1024

// pruneIfFull asks the kernel to forget some files when their descriptors near the process's limit. The notices take
// directory locks that requests may hold, so they are sent from a goroutine of their own.
func (s *Server) pruneIfFull() {
	if !s.nodes.full() || !s.pruning.TryLock() {
		return
	}
	drop := s.nodes.holding(pruneBatch)
	go func() {
		defer s.pruning.Unlock()
		for _, e := range drop {
			if s.fuse.EntryNotify(e.parent, e.name) == fuse.ENOSYS {
				return
			}
		}
	}()
}

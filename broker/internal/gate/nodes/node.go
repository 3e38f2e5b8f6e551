//go:build linux

// Package nodes is what the kernel knows of a served file system by numbers, and how often it refers to each. It holds
// the descriptors of what is behind them, of files no more than it may. It must never ask anybody, and never tell the
// kernel anything: who holds its lock waits for no request. gatefs, which serves them, has one table.
package nodes

import (
	"sync/atomic"

	"golang.org/x/sys/unix"
	"sbx.example/sbx/broker/internal/gate/served"
	"sbx.example/sbx/broker/internal/guard"
)

// Kind is how a node's host object is found.
type Kind uint8

const (
	Static Kind = iota // a directory of the tree
	Gated              // known by its path; asks, or is granted
	Loop               // an object of a guarded directory, known by its inode
)

// Node is what the kernel knows by a number. A static or gated node's number is a function of its path, because the
// kernel detaches what is mounted on a name whose number changes; that of a loopback node, and of what is kept as
// itself, follows its inode, because two files that share a number share a page cache. Numbers are never used for
// anything else later.
type Node struct {
	ID       uint64
	Kind     Kind
	Type     uint32 // S_IFMT
	ReadOnly bool   // loop: named by a Guard or Check rule, or below one
	Text     bool   // loop: named by a Text rule
	Own      bool   // gated: kept as itself, and the session's own
	// static, loop and what is kept as itself: the host object, O_PATH; -1 where there is none, and where it is opened for
	// each request
	FD   int
	Path string       // static and gated
	Dir  *Dir         // static
	Zone *guard.Place // guarded directories
	Key  Key
	// gated: the static directory whose FD its host path starts from. Static: the same of a skeleton that the host lacks
	Base *Node
	Rel  string
	// Relied is set while the kernel relies on the file, EverRelied when it ever did, and Doubted while it does not rely
	// on the name by which it was looked up last.
	Relied, EverRelied, Doubted atomic.Bool
	Lent                        atomic.Bool // somebody has a descriptor of the host's file

	// The table's lock guards what follows.
	parent *Node // loop: where it was last seen, to name it in a callback
	name   string
	looks  uint64    // references the kernel holds
	filled Signature // what the page cache was filled from
	told   Signature // what the kernel was told last
}

// Key tells loopback nodes apart. It has the policy in it, so that a host file linked under a guarded and a plain name
// is two nodes.
type Key struct {
	guard.ID       // of a directory; a file's is without its birth
	Zone           *guard.Place
	ReadOnly, Text bool
	Mode           bool   // read-only, but its permissions may be changed: git tries its configuration for that
	Config         bool   // a repository's configuration: it is shown without its credentials
	ghost          uint64 // of what the host has no more
}

// Signature tells the states of a file apart.
type Signature struct {
	Size                int64
	ModTime, ChangeTime unix.Timespec
	Calm                bool // the file had not changed for a while when this was taken
}

// Dir is a directory of the tree as it is served.
type Dir struct {
	served.Dir
	Children map[string]served.Child
	Subs     map[string]*Node
	Attr     unix.Stat_t
}

// Settles reports whether the directory's description settles the name, whatever the host has there.
func (d *Dir) Settles(name string) bool {
	_, child := d.Children[name]
	_, sub := d.Subs[name]
	return child || sub
}

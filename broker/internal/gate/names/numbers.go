//go:build linux

package names

import (
	"hash/maphash"
	"sync"

	"golang.org/x/sys/unix"
)

// pathBit keeps numbers of paths apart from counted ones.
const pathBit = 1 << 63

// maxGone bounds what a program can have a server remember.
const maxGone = 1 << 16

// Numbers are those by which the kernel knows what a file server knows by its path. Init makes them.
type Numbers struct {
	seed maphash.Seed
	mu   sync.RWMutex
	// gone counts, by path, the directories that were removed or moved through the server.
	gone map[string]uint32
}

// Init has every server give other numbers.
func (s *Numbers) Init() { s.seed, s.gone = maphash.MakeSeed(), make(map[string]uint32) }

// Of is the number of a path. A symlink's target and an object's type (S_IFMT) are part of what it is: the kernel
// caches the one and refuses a change of the other.
func (s *Numbers) Of(path string, typ uint32, target string) uint64 {
	var h maphash.Hash
	h.SetSeed(s.seed)
	h.WriteString(path)
	h.WriteByte(0)
	h.WriteByte(byte(typ >> 12))
	h.WriteString(target)
	if typ == unix.S_IFDIR {
		s.mu.RLock()
		n := s.gone[path]
		s.mu.RUnlock()
		for ; n > 0; n >>= 8 {
			h.WriteByte(byte(n))
		}
	}
	id := h.Sum64() | pathBit
	if id == ^uint64(0) { // the library keeps this one for itself
		id--
	}
	return id
}

// Renew has a directory that is made at a path be another one than that which was there: the kernel keeps one that it
// has removed as long as somebody stands in it, and makes nothing in it.
func (s *Numbers) Renew(path string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if n := s.gone[path]; n > 0 || len(s.gone) < maxGone {
		s.gone[path] = n + 1
	}
}

//go:build linux

package names

import (
	"sync"

	"sbx.example/sbx/broker/internal/guard"
)

// Lent are the files that somebody inside was given to read and write as the host's own: what is done to them the
// kernel does not see as done through a file system of sbx's, so it asks each time. It is never taken back, because
// nobody tells when such a file is closed.
type Lent struct {
	mu  sync.RWMutex
	ids map[guard.ID]bool
	all bool // there are so many that all files are taken for lent
}

// maxLent bounds them.
const maxLent = 1 << 16

// Add notes that a file is lent.
func (l *Lent) Add(id guard.ID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ids == nil {
		l.ids = make(map[guard.ID]bool)
	}
	if l.all = l.all || len(l.ids) >= maxLent; !l.all {
		l.ids[id] = true
	}
}

// Has says whether a file may be lent.
func (l *Lent) Has(id guard.ID) bool {
	l.mu.RLock()
	defer l.mu.RUnlock()
	return l.all || l.ids[id]
}

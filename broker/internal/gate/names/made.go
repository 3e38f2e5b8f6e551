//go:build linux

package names

import (
	"sync"

	"sbx.example/sbx/broker/internal/guard"
)

const maxMade = 4096

// Makings are what was made at paths at which the session was let make something. A path alone says nothing: the host
// may have put something else there. It is safe for concurrent use.
type Makings struct {
	doing sync.RWMutex
	done  uint64 // how often something was made or moved; guarded by doing
	mu    sync.Mutex
	by    map[string]guard.ID
}

// Do has f make or move something and note that.
func (m *Makings) Do(f func()) {
	m.doing.Lock()
	defer m.doing.Unlock()
	m.done++
	f()
}

// Make has f make and hold what gets a path.
func (m *Makings) Make(p string, f func() (int, error)) (fd int, err error) {
	m.Do(func() {
		if fd, err = f(); err == nil {
			m.Note(p, fd)
		}
	})
	return fd, err
}

// Move has f move what has one path to another.
func (m *Makings) Move(from, to string, f func() error) (err error) {
	m.Do(func() {
		if err = f(); err == nil {
			m.Moved(from, to)
		}
	})
	return err
}

// ReadStable has f look at what is there, and whose it is: again, if something was made or moved meanwhile.
func (m *Makings) ReadStable(f func()) {
	for was := m.generation(); ; {
		f()
		now := m.generation()
		if now == was {
			return
		}
		was = now
	}
}

func (m *Makings) generation() uint64 {
	m.doing.RLock()
	defer m.doing.RUnlock()
	return m.done
}

// Note remembers what is held as made at a path: its maker may move or remove it again.
func (m *Makings) Note(p string, fd int) { m.NoteAt(p, fd, "") }

// NoteAt is Note for what has a name in a directory.
func (m *Makings) NoteAt(p string, dir int, name string) {
	id, err := IDAt(dir, name)
	if err != nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.by == nil || len(m.by) >= maxMade {
		m.by = make(map[string]guard.ID)
	}
	m.by[p] = id
}

// Moved remembers it at another path.
func (m *Makings) Moved(from, to string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if id, ok := m.by[from]; ok {
		m.by[to] = id
		delete(m.by, from)
	}
}

// Any says whether something was made at a path.
func (m *Makings) Any(p string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	_, ok := m.by[p]
	return ok
}

// Has says whether what is held is what was made at a path.
func (m *Makings) Has(p string, fd int) bool { return m.HasAt(p, fd, "") }

// HasAt is Has for what has a name in a directory.
func (m *Makings) HasAt(p string, dir int, name string) bool {
	if !m.Any(p) {
		return false
	}
	id, err := IDAt(dir, name)
	m.mu.Lock()
	defer m.mu.Unlock()
	made, ok := m.by[p]
	return err == nil && ok && made == id
}

package guard

import "sync"

// ID is one object of the host, for as long as it exists: a number that is given out again comes with another time of
// birth.
type ID struct {
	Dev, Ino uint64
	Born     int64 // nanoseconds; 0 where the file system does not say
}

// maxMade bounds the memory of a session that makes directories without end. What is made then is as what was there
// before.
const maxMade = 1 << 20

// Made remembers what a session made itself. The zero value remembers nothing yet.
type Made struct {
	mu   sync.RWMutex
	born map[[2]uint64]int64
}

// Add remembers an object that was just made.
func (m *Made) Add(id ID) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.born == nil {
		m.born = make(map[[2]uint64]int64)
	}
	if len(m.born) < maxMade {
		m.born[[2]uint64{id.Dev, id.Ino}] = id.Born
	}
}

// Has says whether the session made the object.
func (m *Made) Has(id ID) bool {
	m.mu.RLock()
	defer m.mu.RUnlock()
	born, ok := m.born[[2]uint64{id.Dev, id.Ino}]
	return ok && born == id.Born
}

// Drop forgets an object.
func (m *Made) Drop(id ID) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.born, [2]uint64{id.Dev, id.Ino})
}

// clear forgets all.
func (m *Made) clear() {
	m.mu.Lock()
	defer m.mu.Unlock()
	clear(m.born)
}

//go:build linux

package fuse

import "sync"

// Handles gives out the numbers of open files that the kernel brings back. They are never reused, so that a late
// request cannot hit a later file. The zero value is ready.
type Handles[T any] struct {
	mu   sync.RWMutex
	open map[uint64]T
	last uint64
}

// Add gives an open file its number.
func (t *Handles[T]) Add(h T) uint64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.open == nil {
		t.open = map[uint64]T{}
	}
	t.last++
	t.open[t.last] = h
	return t.last
}

// Get is the open file of that number, or the zero value.
func (t *Handles[T]) Get(fh uint64) T {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return t.open[fh]
}

// Drop is Get for a number that is not used any more.
func (t *Handles[T]) Drop(fh uint64) T {
	t.mu.Lock()
	defer t.mu.Unlock()
	h := t.open[fh]
	delete(t.open, fh)
	return h
}

// Any says whether is does so of one of them. None is dropped meanwhile.
func (t *Handles[T]) Any(is func(h T) bool) bool {
	t.mu.RLock()
	defer t.mu.RUnlock()
	for _, h := range t.open {
		if is(h) {
			return true
		}
	}
	return false
}

// DropAll drops all, and has each closed.
func (t *Handles[T]) DropAll(each func(h T)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, h := range t.open {
		each(h)
	}
	t.open = nil
}

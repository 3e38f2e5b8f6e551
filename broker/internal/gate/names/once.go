//go:build linux

package names

import "sync"

// Once are the paths that were told of: a name of a secret is looked for anew each time.
type Once struct {
	mu    sync.Mutex
	paths map[string]bool
}

// maxOnce bounds them.
const maxOnce = 1024

// First says whether a path has not been told of.
func (t *Once) First(p string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.paths[p] || len(t.paths) >= maxOnce {
		return false
	}
	if t.paths == nil {
		t.paths = map[string]bool{}
	}
	t.paths[p] = true
	return true
}

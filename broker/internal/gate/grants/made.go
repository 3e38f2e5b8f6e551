//go:build linux

package grants

import "golang.org/x/sys/unix"

// identity is which object of the host something is.
type identity struct{ dev, ino uint64 }

const maxMade = 4096

// NoteMade remembers what a question has allowed to be made: its maker may move or remove it again.
func (gt *Gate) NoteMade(p string, st *unix.Stat_t) {
	gt.mu.Lock()
	defer gt.mu.Unlock()
	if gt.made == nil || len(gt.made) >= maxMade {
		gt.made = make(map[string]identity)
	}
	gt.made[p] = identity{st.Dev, st.Ino}
}

// Makes says whether an answer has allowed something to be made at a path.
func (gt *Gate) Makes(p string) bool {
	gt.mu.Lock()
	defer gt.mu.Unlock()
	_, ok := gt.made[p]
	return ok
}

// HasMade says whether that is what an answer has allowed to be made.
func (gt *Gate) HasMade(p string, st *unix.Stat_t) bool {
	gt.mu.Lock()
	defer gt.mu.Unlock()
	id, ok := gt.made[p]
	return ok && id == identity{st.Dev, st.Ino}
}

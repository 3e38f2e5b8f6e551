//go:build linux

package grants

import (
	"path"
	"time"

	"sbx.example/sbx/broker/internal/program"
)

// A walker is a process that lists a directory and goes on to its names: ls -l, find, an indexer. A question about one
// says where the walk began.
const (
	// walkerFor is how long after its last step a process still counts as walking through a directory.
	walkerFor  = 10 * time.Second
	maxWalkers = 1024
)

// process is one process, and not another that has its number later.
type process struct {
	pid   int
	start uint64
}

// asker is a process that wants something, and where its walk began.
type asker struct {
	process process
	walk    string
}

type walkerKey struct {
	dir     string
	process process
}

// asker says who asks about a name in a directory.
func (gt *Gate) asker(dir string, pid uint32) *asker {
	p := processOf(pid)
	return &asker{p, gt.walks(dir, p)}
}

// Listed notes that a thread reads the names of a directory that asks.
func (gt *Gate) Listed(dir string, pid uint32) {
	key := walkerKey{dir, processOf(pid)}
	gt.mu.Lock()
	defer gt.mu.Unlock()
	gt.pruneWalkers()
	gt.walkers[key] = time.Now().Add(walkerFor)
}

// walks reports where the walk began that a process is on in a directory, empty if it is on none.
func (gt *Gate) walks(dir string, p process) (top string) {
	gt.mu.Lock()
	defer gt.mu.Unlock()
	now := time.Now()
	for key := (walkerKey{dir, p}); key.dir != "/"; key.dir = path.Dir(key.dir) { // no walk is about all of the host
		until, ok := gt.walkers[key]
		if !ok || now.After(until) {
			return top
		}
		top = key.dir
		gt.walkers[key] = now.Add(walkerFor)
	}
	return top
}

func (gt *Gate) pruneWalkers() {
	if len(gt.walkers) < maxWalkers {
		return
	}
	now := time.Now()
	for k, until := range gt.walkers {
		if now.After(until) {
			delete(gt.walkers, k)
		}
	}
	if len(gt.walkers) >= maxWalkers {
		clear(gt.walkers)
	}
}

// processOf is the process that a thread belongs to, as the server's pid namespace knows it.
func processOf(tid uint32) process {
	pid, start := program.Process(int(tid))
	return process{pid, start}
}

// Walks says whether a thread's process goes through a directory that it has listed.
func (gt *Gate) Walks(dir string, pid uint32) bool {
	gt.mu.Lock()
	none := len(gt.walkers) == 0
	gt.mu.Unlock()
	if none || dir != "/" {
		return !none && gt.walks(dir, processOf(pid)) != ""
	}
	key := walkerKey{dir, processOf(pid)}
	gt.mu.Lock()
	defer gt.mu.Unlock()
	return time.Now().Before(gt.walkers[key])
}

package gatefs

import (
	"path"
	"time"

	"sbx/broker/internal/program"
)

// A walker is a process that lists a directory and goes on to its names: ls -l, find, an indexer. A question
// about one says where the
// walk began.
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
func (s *Server) asker(dir string, pid uint32) *asker {
	p := processOf(pid)
	return &asker{p, s.gate.walks(dir, p)}
}

// listed notes that a thread reads the names of a directory that asks.
func (s *Server) listed(n *node, pid uint32) {
	skeleton := n.kind == static && n.dir.Kind == Skeleton
	if pid == 0 || !skeleton && n.kind != gated || n.path == "/" {
		return
	}
	key := walkerKey{n.path, processOf(pid)}
	gt := &s.gate
	gt.mu.Lock()
	defer gt.mu.Unlock()
	gt.pruneWalkers()
	gt.walkers[key] = time.Now().Add(walkerFor)
}

// walks reports where the walk began that a process is on in a directory, empty if it is on none.
func (gt *gate) walks(dir string, p process) (top string) {
	gt.mu.Lock()
	defer gt.mu.Unlock()
	now := time.Now()
	for key := (walkerKey{dir, p}); ; key.dir = path.Dir(key.dir) {
		until, ok := gt.walkers[key]
		if !ok || now.After(until) {
			return top
		}
		top = key.dir
		gt.walkers[key] = now.Add(walkerFor)
	}
}

func (gt *gate) pruneWalkers() {
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

// blind reports whether a request of a walker is answered without a question: stat(2) of what it has just seen listed
// tells the type, which the listing told as well.
func (s *Server) blind(pid uint32, n *node, o op) bool {
	if o != opStat && o != opAccess {
		return false
	}
	s.gate.mu.Lock()
	none := len(s.gate.walkers) == 0
	s.gate.mu.Unlock()
	return !none && s.gate.walks(path.Dir(n.path), processOf(pid)) != ""
}

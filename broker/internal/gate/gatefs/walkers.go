package gatefs

import (
	"os"
	"path"
	"strconv"
	"strings"
	"time"
)

// A walker is a process that lists a directory and goes on to its names: ls -l, find, an indexer. What such a one does is about
// the directory, not about each name.
const (
	// walkerFor is how long after its last step a process still counts as walking through a directory.
	walkerFor = 10 * time.Second
	// walkerDenied is how long a process that was refused a directory's names is refused them without another question.
	walkerDenied = 10 * time.Minute
	maxWalkers   = 1024
)

type walkerKey struct {
	dir     string
	process uint32
}

type walker struct {
	until  time.Time
	denied bool
}

// listed notes that a thread reads the names of a skeleton directory.
func (s *Server) listed(n *node, pid uint32) {
	if pid == 0 || n.kind != static || n.dir.Kind != Skeleton || n.path == "/" {
		return
	}
	key := walkerKey{n.path, processOf(pid)}
	gt := &s.gate
	gt.mu.Lock()
	defer gt.mu.Unlock()
	gt.pruneWalkers()
	w := gt.walkers[key]
	if w == nil {
		w = &walker{}
		gt.walkers[key] = w
	}
	if !w.denied {
		w.until = time.Now().Add(walkerFor)
	}
}

// walks reports where the walk began that the thread's process is on in the directory, empty if it is on none, and whether it was
// refused the names. One that goes on to further skeletons is asked about once, at the top.
func (s *Server) walks(dir string, pid uint32) (process uint32, top string, denied bool) {
	gt := &s.gate
	gt.mu.Lock()
	none := len(gt.walkers) == 0
	gt.mu.Unlock()
	if none || pid == 0 {
		return 0, "", false
	}
	key := walkerKey{dir, processOf(pid)}
	gt.mu.Lock()
	defer gt.mu.Unlock()
	now := time.Now()
	for ; ; key.dir = path.Dir(key.dir) {
		w := gt.walkers[key]
		if w == nil || now.After(w.until) {
			return key.process, top, denied
		}
		top, denied = key.dir, denied || w.denied
		if !w.denied {
			w.until = now.Add(walkerFor)
		}
	}
}

// refuseWalker makes the answer to a walker's question hold for the rest of its walk. gt.mu is held.
func (gt *gate) refuseWalker(key walkerKey) {
	if w := gt.walkers[key]; w != nil {
		w.denied, w.until = true, time.Now().Add(walkerDenied)
	}
}

func (gt *gate) pruneWalkers() {
	if len(gt.walkers) < maxWalkers {
		return
	}
	now := time.Now()
	for k, w := range gt.walkers {
		if now.After(w.until) {
			delete(gt.walkers, k)
		}
	}
	if len(gt.walkers) >= maxWalkers {
		clear(gt.walkers)
	}
}

// processOf is the process that a thread belongs to, as the server's pid namespace knows it.
func processOf(tid uint32) uint32 {
	b, err := os.ReadFile("/proc/" + strconv.FormatUint(uint64(tid), 10) + "/status")
	if err != nil {
		return tid
	}
	_, rest, _ := strings.Cut(string(b), "\nTgid:\t")
	line, _, _ := strings.Cut(rest, "\n")
	if n, err := strconv.ParseUint(line, 10, 32); err == nil {
		return uint32(n)
	}
	return tid
}

// blind reports whether a request of a walker is answered without a question: stat(2) of what it has just seen listed tells the
// type, which the listing told as well.
func (s *Server) blind(pid uint32, n *node, o op) bool {
	if o != opStat && o != opAccess || n.base == nil || n.base.kind != static || strings.ContainsRune(n.rel, '/') {
		return false
	}
	_, top, _ := s.walks(n.base.path, pid)
	return top != ""
}

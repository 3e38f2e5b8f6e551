//go:build linux

package notify

import (
	"sync"
	"syscall"
	"time"
)

const (
	// refusalHold is how long a refusal stands for the same call of the same thread. A program that repeats it as fast as
	// it can is told so without a walk, and asks nobody; the file engine does the same for a second.
	refusalHold = 100 * time.Millisecond
	maxRefusals = 256
)

// refusalKey is what the loop knows of a call without a walk. A name that is no link and is made one is refused for a
// moment too long, and never granted.
type refusalKey struct {
	pid   uint32
	nr    int32
	flags uint64
	path  string
}

// refusals are the answers of a moment ago that were no.
type refusals struct {
	mu   sync.Mutex
	held map[refusalKey]refusal
}

type refusal struct {
	until time.Time
	errno syscall.Errno
}

// holds returns the refusal that still stands.
func (x *refusals) holds(n *notif, flags uint64, path []byte) (syscall.Errno, bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if len(x.held) == 0 {
		return 0, false
	}
	r, ok := x.held[refusalKey{n.pid, n.nr, flags, string(path)}]
	return r.errno, ok && time.Now().Before(r.until)
}

func (x *refusals) add(n *notif, flags uint64, path []byte, e syscall.Errno) {
	if len(path) == 0 {
		return
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.held == nil || len(x.held) >= maxRefusals {
		x.held = make(map[refusalKey]refusal)
	}
	x.held[refusalKey{n.pid, n.nr, flags, string(path)}] = refusal{time.Now().Add(refusalHold), e}
}

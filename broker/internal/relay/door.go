//go:build linux

package relay

import "sync"

// Door knows who stands behind connections that the broker itself has made: where the notification engine carries
// connect(2) out, the kernel names the broker as the peer. Connections are accepted in the order in which they were
// made.
type Door struct {
	turn sync.Mutex // of those who connect
	mu   sync.Mutex
	pids []int
}

// Connect has connect make a connection for a process.
func (d *Door) Connect(pid int, connect func() bool) {
	d.turn.Lock()
	defer d.turn.Unlock()
	d.mu.Lock()
	d.pids = append(d.pids, pid)
	d.mu.Unlock()
	if connect() {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if n := len(d.pids); n > 0 { // nothing was accepted for it
		d.pids = d.pids[:n-1]
	}
}

// next is the process behind the connection that was just accepted, 0 if it is not known.
func (d *Door) next() int {
	if d == nil {
		return 0
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.pids) == 0 {
		return 0
	}
	pid := d.pids[0]
	d.pids = d.pids[1:]
	return pid
}

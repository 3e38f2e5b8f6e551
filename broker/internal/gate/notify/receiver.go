//go:build linux

package notify

import (
	"runtime"
	"syscall"
)

// receiver receives one notification after the other, for a goroutine that otherwise does nothing but answer.
type receiver struct {
	fd    int
	times uint
}

// yieldEvery is how many notifications take clearly less than the ten milliseconds that the runtime leaves a goroutine.
// One that only makes system calls never gives way by itself. The runtime's monitor then takes its processor away in
// every call that waits, and looks every 20 µs for as long as it finds one to take: it would wake about as often as
// calls come.
const yieldEvery = 32

func (r *receiver) next(n *notif) syscall.Errno {
	if r.times++; r.times%yieldEvery == 0 {
		runtime.Gosched()
	}
	return receive(r.fd, n)
}

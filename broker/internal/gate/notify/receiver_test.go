//go:build linux

package notify

import (
	"runtime"
	"sync/atomic"
	"syscall"
	"testing"
)

// TestReceiverGivesWay: on one processor whoever else wants to run does so before the runtime's monitor has to see to
// it. Here nothing else lets go of the processor: each receive fails at once.
func TestReceiverGivesWay(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	var n notif
	r := receiver{fd: -1}
	for range 3 {
		var ran atomic.Bool
		go ran.Store(true)
		// Each 61st turn the scheduler looks at the global queue first, where whoever gives way stands (runtime/proc.go,
		// findRunnable): the next time it is the other's.
		for range 2 * yieldEvery {
			if e := r.next(&n); e != syscall.EBADF {
				t.Fatalf("receiving from no listener: %v", e)
			}
		}
		if !ran.Load() {
			t.Fatalf("after %d calls nobody else had been let run", 2*yieldEvery)
		}
	}
}

//go:build linux

package child

import (
	"fmt"
	"time"

	"golang.org/x/sys/unix"
)

// MakePoller has Go's runtime make the epoll instance and the eventfd that it waits for process 1 and for files with.
// Where no descriptor is left when they are first needed, the runtime ends the process with a trace; here that is an
// error (EMFILE).
func MakePoller() error {
	var pair [2]int
	if err := unix.Pipe2(pair[:], unix.O_CLOEXEC); err != nil {
		return fmt.Errorf("opening two more files: %w", err)
	}
	unix.Close(pair[0])
	unix.Close(pair[1])
	time.AfterFunc(time.Hour, func() {}).Stop() // the first timer makes the poller (runtime.netpollGenericInit)
	return nil
}

package program

import (
	"os"
	"runtime"

	"golang.org/x/sys/unix"
)

// StartPowerless is Start with no_new_privs set: on a thread that ends, because the others must not have it.
func (p Program) StartPowerless(args []string, attr *os.ProcAttr) (proc *os.Process, err error) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread() // for good
		if err = unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err == nil {
			proc, err = p.Start(args, attr)
		}
	}()
	<-done
	return proc, err
}

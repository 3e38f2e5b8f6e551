package launch

import (
	"os"
	"os/signal"
	"syscall"
)

// forwarded are the signals that are passed on to the program.
var forwarded = [...]os.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGUSR1, syscall.SIGUSR2}

// watchSignals passes the caller's signals on to the program's process group and keeps the terminal's
// size. The returned function ends it.
func watchSignals(r *Running, term *terminal) func() {
	ch := make(chan os.Signal, 8)
	signal.Notify(ch, forwarded[:]...)
	signal.Notify(ch, syscall.SIGWINCH)
	done := make(chan struct{})
	go func() {
		for {
			select {
			case <-done:
				return
			case s := <-ch:
				r.handle(s.(syscall.Signal), term)
			}
		}
	}()
	return func() { signal.Stop(ch); close(done) }
}

func (r *Running) handle(s syscall.Signal, term *terminal) {
	switch {
	case s == syscall.SIGWINCH:
		if term.real != nil {
			term.resize()
		}
	case r.Plan.Process.AsPID1:
		_ = syscall.Kill(r.Child.PID, s)
	default:
		_ = r.Child.Signal(-r.Child.Main, s)
	}
}

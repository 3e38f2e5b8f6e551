package launch

import (
	"os"
	"os/signal"
	"syscall"
)

// forwarded are the signals that are passed on to the program.
var forwarded = [...]os.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGUSR1, syscall.SIGUSR2}

// forwardSignals passes the caller's signals on to the program's process group and keeps the
// terminal's size, until stop is closed. It is called before the program can have said anything: whoever has
// heard from it may send it a signal. Sooner, signals end the broker, and with it the sandbox.
func (r *Running) forwardSignals(term *terminal, stop <-chan struct{}) {
	ch := make(chan os.Signal, 8)
	signal.Notify(ch, forwarded[:]...)
	if term.real != nil {
		signal.Notify(ch, syscall.SIGWINCH)
	}
	if term.later || term.real == nil { // else the terminal is the program's, and no key sends this process anything
		signal.Notify(ch, syscall.SIGTSTP)
	}
	go func() {
		defer signal.Stop(ch)
		for {
			select {
			case <-stop:
				return
			case s := <-ch:
				r.handle(s.(syscall.Signal), term)
			}
		}
	}()
}

func (r *Running) handle(s syscall.Signal, term *terminal) {
	switch {
	case s == syscall.SIGWINCH:
		term.resize()
		if term.later && !term.reading() { // the kernel tells the foreground
			_ = r.Child.Signal(-r.Child.Main(), s)
		}
	case s == syscall.SIGTSTP && (r.Plan.Process.Idle || r.Plan.Process.AsPID1 || r.Child.Main() == 0):
		stop(os.Getpid(), s)
	case s == syscall.SIGTSTP:
		term.asked.Store(true)
		_ = r.Child.Signal(-r.Child.Main(), s)
	case r.Plan.Process.Idle:
		r.Child.SendKill()
	case !r.Plan.Process.AsPID1 && r.Child.Main() == 0:
		// There is no program yet that could say what it makes of the signal: it ends everything, as it
		// would have ended this process a moment earlier.
		r.early.CompareAndSwap(0, int32(s))
		r.Child.Abort()
	case r.Plan.Process.AsPID1:
		r.Child.SendSignal(s)
	default:
		_ = r.Child.Signal(-r.Child.Main(), s)
	}
}

package launch

import (
	"os"
	"os/signal"
	"syscall"
)

// forwarded are the signals that are passed on to the program.
var forwarded = [...]os.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGUSR1, syscall.SIGUSR2}

// forwardSignals passes the caller's signals on to the program's process group and keeps the
// terminal's size, until stop is closed. Before it is called they end the broker, and with it the
// sandbox.
func (r *Running) forwardSignals(term *terminal, stop <-chan struct{}) {
	select {
	case <-stop:
		return
	default:
	}
	ch := make(chan os.Signal, 8)
	signal.Notify(ch, forwarded[:]...)
	if term.real != nil {
		signal.Notify(ch, syscall.SIGWINCH)
	}
	defer signal.Stop(ch)
	term.resize()
	for {
		select {
		case <-stop:
			return
		case s := <-ch:
			r.handle(s.(syscall.Signal), term)
		}
	}
}

func (r *Running) handle(s syscall.Signal, term *terminal) {
	switch {
	case s == syscall.SIGWINCH:
		term.resize()
	case r.Plan.Process.Idle:
		r.Child.SendKill()
	case !r.Plan.Process.AsPID1 && r.Child.Main() == 0:
		// There is no program yet that could say what it makes of the signal: it ends everything, as it
		// would have ended this process a moment earlier.
		r.early.CompareAndSwap(0, int32(s))
		r.Child.SendKill()
	case r.Plan.Process.AsPID1:
		r.Child.SendSignal(s)
	default:
		_ = r.Child.Signal(-r.Child.Main(), s)
	}
}

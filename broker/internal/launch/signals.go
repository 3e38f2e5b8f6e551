//go:build linux

package launch

import (
	"os"
	"os/signal"
	"syscall"
	"time"
)

// forwardSignals passes the caller's signals on to the program's process group and keeps the terminal's size, until the
// function that it returns is called. It is called before the program can have said anything: whoever has heard from it
// may send it a signal. Sooner, signals end the broker, and with it the sandbox.
func (r *Running) forwardSignals(term *terminal) (release func()) {
	list := forwarded[:]
	if term.real != nil {
		list = append(list, syscall.SIGWINCH)
	}
	if term.later || term.real == nil { // else the terminal is the program's, and no key sends this process anything
		list = append(list, syscall.SIGTSTP)
	}
	return forward(list, r.signals, func(s syscall.Signal) { r.handle(s, term) })
}

// followSize keeps the terminal's size for a program that is not sbx, whose other signals are its own business.
func (r *Running) followSize(term *terminal) (release func()) {
	if term.real == nil {
		return func() {}
	}
	ch, stop := make(chan os.Signal, 1), make(chan struct{})
	signal.Notify(ch, syscall.SIGWINCH)
	go func() {
		defer signal.Stop(ch)
		for {
			select {
			case <-stop:
				return
			case <-ch:
				r.handle(syscall.SIGWINCH, term)
			}
		}
	}()
	return func() { close(stop) }
}

// ends says whether a program is told to end by a signal.
func ends(s syscall.Signal) bool {
	return s == syscall.SIGINT || s == syscall.SIGTERM || s == syscall.SIGHUP || s == syscall.SIGQUIT
}

func (r *Running) handle(s syscall.Signal, term *terminal) {
	if s == syscall.SIGINT && r.told.CompareAndSwap(true, false) {
		return
	}
	if r.ended.Load() {
		r.handleAfter(s, term)
		return
	}
	if ends(s) {
		r.passed.Store(int32(s))
	}
	main := r.main()
	switch {
	case s == syscall.SIGWINCH:
		term.resize()
		if main != 0 && term.later && !term.reading() { // the kernel tells the foreground
			_ = r.Child.Signal(-main, s)
		}
	case s == syscall.SIGTSTP && (r.Plan.Process.Idle || r.Plan.Process.AsPID1 || main == 0):
		stop(os.Getpid(), s)
	case s == syscall.SIGTSTP:
		term.asked.Store(true)
		_ = r.Child.Signal(-main, s)
	case r.Plan.Process.Idle:
		r.Child.SendKill()
	case !r.Plan.Process.AsPID1 && main == 0:
		// There is no program yet that could say what it makes of the signal: it ends everything, as it
		// would have ended this process a moment earlier.
		r.early.CompareAndSwap(0, int32(s))
		r.Child.Abort()
	case r.Plan.Process.AsPID1:
		r.Child.SendSignal(s)
	default:
		_ = r.Child.Signal(-main, s)
	}
}

// handleAfter is handle when the program has ended. One signal has nobody wait for a reader who takes nothing. Another
// ends this process where that waits for something else, a terminal that takes nothing for instance.
func (r *Running) handleAfter(s syscall.Signal, term *terminal) {
	switch {
	case s == syscall.SIGWINCH:
		term.resize()
	case s == syscall.SIGTSTP:
		stop(os.Getpid(), s)
	case ends(s):
		r.urge()
		if r.late.Load() {
			EndBy(s)
		}
	}
}

// Interrupt does what Ctrl-C does where the program is not in the foreground of its own terminal: the program, and what
// else is in this process's group, hear of it. The program has when it returns. Not before the sandbox stands.
func (r *Running) Interrupt() {
	if main := r.main(); main != 0 && !r.Plan.Process.AsPID1 {
		_ = r.Child.SignalNow(-main, syscall.SIGINT)
		r.told.Store(true) // not once more because this process hears of it, too
	}
	_ = syscall.Kill(0, syscall.SIGINT)
}

// main is the program's pid as seen inside; 0 where none has been executed. One that has may be heard of sooner than
// process 1 says its pid.
func (r *Running) main() int {
	for r.Child.Main() == 0 && !r.Plan.Process.Idle && !r.Plan.Process.AsPID1 && r.Child.Began() {
		time.Sleep(time.Millisecond)
	}
	return r.Child.Main()
}

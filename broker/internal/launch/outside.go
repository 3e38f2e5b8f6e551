package launch

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"syscall"
	"time"
)

// Outside is a program that this process starts itself, and does not build a sandbox for.
type Outside struct {
	Path    string
	Argv    []string
	Env     []string
	Dir     string // to work in; "": the caller's
	Stdio   [3]*os.File
	Timeout time.Duration // 0: none
	Before  func()        // what AsStarted has returned, or nil
	Stays   bool          // this process goes on afterwards: its signals are not passed on
}

// End is how one has ended.
type End struct {
	Wait     syscall.WaitStatus
	TimedOut bool
	Duration time.Duration
}

// Status is what a shell reports: the exit status, 128 + signal, or 124 after a time-out.
func (e End) Status() int {
	switch {
	case e.TimedOut:
		return 124
	case e.Wait.Signaled():
		return 128 + int(e.Wait.Signal())
	}
	return e.Wait.ExitStatus()
}

// Run starts the program, passes signals on and waits for its end. An *ExecError says that it could not be started.
func (o Outside) Run(ctx context.Context) (End, error) {
	begin := time.Now()
	files := make([]*os.File, 3)
	copy(files, o.Stdio[:])
	var p *os.Process
	started := make(chan struct{})
	if !o.Stays { // before the program can have said anything: whoever has heard from it may send it a signal
		defer forward(toForward(), o.Before, func(s syscall.Signal) {
			if <-started; p != nil {
				_ = p.Signal(s)
			}
		})()
	}
	p, err := os.StartProcess(o.Path, o.Argv, &os.ProcAttr{Env: o.Env, Dir: o.Dir, Files: files})
	close(started)
	if err != nil {
		return End{}, &ExecError{Status: 126, Path: o.Path, Err: err}
	}
	expired := false
	if o.Timeout > 0 {
		t := time.AfterFunc(o.Timeout, func() { expired = true; _ = p.Kill() })
		defer t.Stop()
	}
	defer context.AfterFunc(ctx, func() { _ = p.Kill() })()
	st, err := p.Wait()
	if err != nil {
		return End{}, fmt.Errorf("waiting for %s: %w", o.Path, err)
	}
	return End{Wait: st.Sys().(syscall.WaitStatus), TimedOut: expired, Duration: time.Since(begin)}, ctx.Err()
}

// forwarded are the signals that are passed on to the program.
var forwarded = [...]syscall.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGUSR1,
	syscall.SIGUSR2}

// toForward are the signals to pass on: not what this process was told to ignore, so that the program ignores it as
// well.
func toForward() []syscall.Signal {
	return slices.DeleteFunc(slices.Clone(forwarded[:]), func(s syscall.Signal) bool { return signal.Ignored(s) })
}

// forward calls handle with the signals of list, each when the last is handled, until the function that it returns is
// called. Before is what AsStarted has returned, or nil.
func forward(list []syscall.Signal, before func(), handle func(syscall.Signal)) (release func()) {
	ch := make(chan os.Signal, 16)
	for _, s := range list {
		signal.Notify(ch, s)
	}
	if before != nil {
		before()
	}
	go func() {
		for s := range ch {
			handle(s.(syscall.Signal))
		}
	}()
	return func() {
		signal.Stop(ch)
		close(ch)
	}
}

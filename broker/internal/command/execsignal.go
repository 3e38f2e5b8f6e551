//go:build linux

package command

import (
	"os"
	"os/signal"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"sbx.example/sbx/broker/client"
	"sbx.example/sbx/broker/internal/launch"
)

// signals are those that this process is told and a program inside is to hear.
type signals struct {
	c       client.Programs
	pid     int
	started chan struct{}
	once    sync.Once
	over    atomic.Bool // the program has ended
}

// ended says that the program has. What it wrote may still have to be copied, for ever where nobody reads it.
func (s *signals) ended() { s.over.Store(true) }

// startPatience is how long a signal waits for the program to have started; the broker says so within milliseconds.
const startPatience = time.Second

// passSignals begins to collect signals, before the program is asked for: whoever has seen its first output may send
// one.
func passSignals(c client.Programs) *signals {
	s := &signals{c: c, started: make(chan struct{})}
	ch := make(chan os.Signal, 8)
	signal.Notify(ch, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGUSR1, syscall.SIGUSR2,
		syscall.SIGTSTP)
	go func() {
		for x := range ch {
			s.pass(x.(syscall.Signal))
		}
	}()
	return s
}

func (s *signals) startOf(pid int) {
	s.once.Do(func() {
		s.pid = pid
		close(s.started)
	})
}

// pass sends one on. Being stopped stops the program too. While there is no program, and when it has ended, a signal is
// this process's own.
func (s *signals) pass(x syscall.Signal) {
	over := s.over.Load()
	if !over {
		select {
		case <-s.started:
		case <-time.After(startPatience):
			over = true
		}
	}
	switch {
	case x == syscall.SIGTSTP && over:
		stop()
	case x == syscall.SIGTSTP:
		_ = s.c.Signal(s.pid, "STOP")
		stop()
		_ = s.c.Signal(s.pid, "CONT")
	case over:
		launch.EndBy(x)
	default:
		_ = s.c.Signal(s.pid, strings.TrimPrefix(unix.SignalName(x), "SIG"))
	}
}

// stop stops this process, and returns when it is continued. Sent to the process as a whole the signal may be another
// thread's to take, and this one would run on for a moment.
func stop() {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	_ = unix.Tgkill(os.Getpid(), unix.Gettid(), unix.SIGSTOP)
}

package launch

import (
	"io"
	"os"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"sbx/shared/plan"
	"sbx/shared/stage"
)

// terminal joins the caller's terminal and the sandbox's own. The caller's is in raw mode while the
// program runs, so every key reaches the sandbox's line discipline and nothing is interpreted twice.
type terminal struct {
	real   *os.File // nil: the caller has none, and every method does nothing
	master *os.File
	saved  *unix.Termios
	input  bool // keys are read from real
	out    *os.File
	wg     sync.WaitGroup
	mu     sync.Mutex
	raw    bool
	join   Join
}

// Join makes what copies between the caller's terminal and the sandbox's: input passes keys on until there are no
// more, output what the sandbox's terminal shows. keys is nil where the program does not read the terminal.
type Join func(keys, out, guest *os.File) (input, output func())

// plainJoin copies and does nothing else.
func plainJoin(keys, out, guest *os.File) (input, output func()) {
	return func() { _, _ = io.Copy(writer{guest}, reader{keys}) }, func() { _, _ = io.Copy(writer{out}, reader{guest}) }
}

func isTerminal(f *os.File) bool {
	_, err := unix.IoctlGetTermios(int(f.Fd()), unix.TCGETS)
	return err == nil
}

// HasTerminal says whether one of the descriptors is a terminal.
func HasTerminal(files [3]*os.File) bool {
	for _, f := range files {
		if f != nil && isTerminal(f) {
			return true
		}
	}
	return false
}

// openTerminal notes the caller's terminal and its settings.
func openTerminal(p *plan.Plan, files [3]*os.File) *terminal {
	t := &terminal{}
	if !p.Process.TTY {
		return t
	}
	for i, f := range files {
		if f == nil || p.Stdio[i] != plan.Pty {
			continue
		}
		if t.real == nil {
			t.real = f
			t.saved, _ = unix.IoctlGetTermios(int(f.Fd()), unix.TCGETS)
		}
		if i == 0 {
			t.input = true
		}
		if i > 0 && t.out == nil {
			t.out = f
		}
	}
	if t.out == nil {
		t.out = t.real
	}
	return t
}

// start gives the sandbox's terminal the caller's settings and size, and joins the two.
func (t *terminal) start(c *stage.Child) {
	if t.real == nil {
		return
	}
	// A descriptor of our own: the child's are closed as soon as it is reaped, which may be before its last words
	// have been read.
	t.master = c.Fds[plan.FdPty]
	if fd, err := unix.FcntlInt(t.master.Fd(), unix.F_DUPFD_CLOEXEC, 0); err == nil {
		t.master = os.NewFile(uintptr(fd), "terminal")
	}
	if t.saved != nil {
		_ = unix.IoctlSetTermios(int(t.master.Fd()), unix.TCSETS, t.saved)
	}
	t.resize()
	t.makeRaw()
	join, keys := t.join, t.real
	if join == nil {
		join = plainJoin
	}
	if !t.input {
		keys = nil
	}
	input, output := join(keys, t.out, t.master)
	t.wg.Add(1)
	go func() {
		defer t.wg.Done()
		output()
	}()
	if t.input {
		go input()
	}
}

// reader and writer hide os.File's ReadFrom and splice paths, which do not work on terminals.
type reader struct{ f *os.File }

func (r reader) Read(b []byte) (int, error) { return r.f.Read(b) }

type writer struct{ f *os.File }

func (w writer) Write(b []byte) (int, error) { return w.f.Write(b) }

func (t *terminal) resize() {
	if t.real == nil || t.master == nil {
		return
	}
	if ws, err := unix.IoctlGetWinsize(int(t.real.Fd()), unix.TIOCGWINSZ); err == nil {
		_ = unix.IoctlSetWinsize(int(t.master.Fd()), unix.TIOCSWINSZ, ws)
	}
}

// makeRaw is cfmakeraw(3) on the caller's terminal, if keys are read from it.
func (t *terminal) makeRaw() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.saved == nil || !t.input || t.raw {
		return
	}
	r := (&Settings{*t.saved}).Raw().t
	if unix.IoctlSetTermios(int(t.real.Fd()), unix.TCSETSW, &r) == nil {
		t.raw = true
	}
}

func (t *terminal) restore() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.saved != nil && t.raw {
		_ = unix.IoctlSetTermios(int(t.real.Fd()), unix.TCSETSW, t.saved)
		t.raw = false
	}
}

// suspended is called when the program was stopped, by Ctrl-Z as a rule: give the caller's terminal
// back, stop as well, and go on together.
func (t *terminal) suspended(c *stage.Child) {
	if t.real == nil || !t.input {
		return
	}
	t.restore()
	_ = syscall.Kill(0, syscall.SIGTSTP) // the whole job; goes on here after SIGCONT
	t.makeRaw()
	t.resize()
	_ = c.Signal(-c.Main(), syscall.SIGCONT)
}

// drain waits for the last output: the master reads EIO once every process of the sandbox is gone.
func (t *terminal) drain() {
	if t.master == nil {
		return
	}
	done := make(chan struct{})
	go func() { t.wg.Wait(); close(done) }()
	select {
	case <-done:
	case <-time.After(2 * time.Second):
	}
	t.restore()
}

//go:build linux

package launch

import (
	"io"
	"os"
	"os/signal"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
	"golang.org/x/term"

	"sbx.example/sbx/broker/internal/child"
	"sbx.example/sbx/broker/plan"
)

// terminal joins the caller's terminal and the sandbox's own. The caller's is in raw mode while the
// program has it, so every key reaches the sandbox's line discipline and nothing is interpreted twice.
//
// A program whose input or output is something else is part of a pipeline, where the terminal may be another's and
// most programs never read it. It begins in the background of its own terminal: the kernel stops it when it reads
// that or changes its mode (SIGTTIN, SIGTTOU), and only then the caller's terminal is taken for it. Until then Ctrl-C
// and Ctrl-Z are the whole pipeline's, and keys that were typed ahead the shell's.
type terminal struct {
	real    *os.File // nil: the caller has none, and every method does nothing
	keys    *os.File // what is read; real or the controlling terminal
	master  *os.File
	release func() // see HoldOpen
	saved   *term.State
	stdin   bool // it is the program's standard input
	later   bool // the program has to ask for keys
	out     *os.File
	wg      sync.WaitGroup
	mu      sync.Mutex
	input   bool // keys are read
	raw     bool
	join    Join
	read    func() // begins to read keys; later only
	once    sync.Once
	asking  sync.Mutex
	asked   atomic.Bool // the program was told to stop because this process was
	over    atomic.Bool
}

// Join makes what copies between the caller's terminal and the sandbox's: input passes keys on until there are no
// more, output what the sandbox's terminal shows. keys is nil where the program does not read the terminal. Where
// taking is not nil, input is called when the program wants keys, and calls that as soon as it may have the terminal.
type Join func(keys, out, guest *os.File, taking func()) (input, output func())

// PlainJoin copies and does nothing else.
func PlainJoin(keys, out, guest *os.File, taking func()) (input, output func()) {
	input = func() {
		if taking != nil {
			taking()
		}
		_, _ = io.Copy(writer{guest}, reader{keys})
	}
	return input, func() { _, _ = io.Copy(writer{out}, reader{guest}) }
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
			t.saved = TerminalSettings(f)
		}
		if i == 0 {
			t.keys, t.stdin, t.input = f, true, true
		}
		if i > 0 && t.out == nil {
			t.out = f
		}
	}
	if t.out == nil {
		t.out = t.real
	}
	if t.later = p.Background(); t.later {
		t.input = false
		if t.keys == nil {
			t.keys = t.real
			if fd, err := unix.Open("/dev/tty", unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC, 0); err == nil {
				t.keys = os.NewFile(uintptr(fd), "/dev/tty")
			}
		}
	}
	return t
}

// start gives the sandbox's terminal the caller's settings and size, and joins the two.
func (t *terminal) start(c *child.Child) {
	if t.real == nil {
		return
	}
	// A descriptor of our own: the child's are closed as soon as it is reaped, which may be before its last words
	// have been read.
	master := c.Fds[plan.FdPty]
	if fd, err := unix.FcntlInt(master.Fd(), unix.F_DUPFD_CLOEXEC, 0); err == nil {
		master = os.NewFile(uintptr(fd), "terminal")
	}
	t.mu.Lock()
	t.master, t.release = master, HoldOpen(master)
	t.mu.Unlock()
	if t.saved != nil {
		_ = SetTerminal(t.master, t.saved)
	}
	t.resize()
	t.makeRaw()
	join := t.join
	if join == nil {
		join = PlainJoin
	}
	var taking func()
	if t.later {
		taking = func() { t.give(c) }
	}
	input, output := join(t.keys, t.out, t.master, taking)
	t.wg.Add(1)
	go func() {
		defer t.wg.Done()
		output()
	}()
	if t.later {
		t.read = input
		if t.stdin {
			go t.watch(c)
		}
	} else if t.input {
		go input()
	}
}

// HoldOpen keeps the program's side of a terminal open until the function that it returns is called. Else the master
// would be at its end (EIO) as soon as the program has closed all that it has of the terminal, which it may open again
// (/dev/tty): nobody would read what it writes then, and in the end it would wait for ever.
func HoldOpen(master *os.File) (release func()) {
	peer, err := child.Peer(master)
	if err != nil {
		return func() {}
	}
	return func() { peer.Close() }
}

// reader and writer hide os.File's ReadFrom and splice paths, which do not work on terminals.
type reader struct{ f *os.File }

func (r reader) Read(b []byte) (int, error) { return r.f.Read(b) }

type writer struct{ f *os.File }

func (w writer) Write(b []byte) (int, error) { return w.f.Write(b) }

func (t *terminal) resize() {
	t.mu.Lock()
	defer t.mu.Unlock()
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
	t.raw = MakeRaw(t.keys) == nil
}

func (t *terminal) restore() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.saved != nil && t.raw {
		_ = SetTerminal(t.keys, t.saved)
		t.raw = false
	}
}

// stopped is called when the program was stopped. It must not wait for a person.
func (t *terminal) stopped(c *child.Child, by syscall.Signal) {
	switch {
	case t.later && (by == syscall.SIGTTIN || by == syscall.SIGTTOU):
		go t.want(c)
	case t.asked.Swap(false):
		t.suspend(c, os.Getpid()) // the others have been told as this process was
	case t.reading():
		t.suspend(c, 0) // the whole job
	}
}

func (t *terminal) reading() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.input
}

// suspend gives the caller's terminal back, stops as well, and goes on together with the program.
func (t *terminal) suspend(c *child.Child, job int) {
	t.restore()
	stop(job, syscall.SIGTSTP)
	t.makeRaw()
	t.resize()
	_ = c.Signal(-c.Main(), syscall.SIGCONT)
}

// notStopped is after which time it is clear that this process was not stopped: the kernel stops no job that nobody
// could let go on.
const notStopped = time.Second

// stop has this process, or its whole job, stopped by sig and returns when it goes on. False: it was not stopped.
func stop(job int, sig syscall.Signal) bool {
	on := make(chan os.Signal, 1)
	signal.Notify(on, syscall.SIGCONT)
	defer signal.Stop(on)
	defer byDefault(sig)()
	_ = syscall.Kill(job, sig)
	for _, d := range [...]time.Duration{notStopped, notStopped / 10} { // time goes on while it is stopped
		select {
		case <-on:
			return true
		case <-time.After(d):
		}
	}
	return false
}

// want gives the program, which has been stopped because it wants keys, the caller's terminal. In the background this
// process stops, as the program would have; without anybody who could bring it to the foreground the program
// hears what the kernel tells a job that was left alone.
func (t *terminal) want(c *child.Child) {
	t.asking.Lock()
	defer t.asking.Unlock()
	for !t.foreground() {
		if t.hungUp() || !stop(0, syscall.SIGTTIN) {
			_ = c.Signal(-c.Main(), syscall.SIGHUP)
			_ = c.Signal(-c.Main(), syscall.SIGCONT)
			return
		}
	}
	if t.reading() {
		t.give(c)
	} else {
		t.once.Do(func() { go t.read() })
	}
}

// unread is how long a line that was typed waits for another program of the pipeline to read it.
const unread = 150 * time.Millisecond

// watch takes the terminal for a program whose standard input it is and that waits for input without reading (poll(2)),
// of which the kernel tells nobody: a line has been typed, no other program has read it, and none has the terminal in
// a mode of its own.
func (t *terminal) watch(c *child.Child) {
	typed := func(ms int) bool {
		fds := []unix.PollFd{{Fd: int32(t.keys.Fd()), Events: unix.POLLIN}}
		n, err := unix.Poll(fds, ms)
		return err == nil && n == 1 && fds[0].Revents == unix.POLLIN
	}
	mine := func() bool {
		now, err := unix.IoctlGetTermios(int(t.keys.Fd()), unix.TCGETS)
		return err == nil && now.Lflag&unix.ICANON != 0 && t.foreground()
	}
	for !t.over.Load() && !t.reading() {
		before := typed(1000) && mine()
		time.Sleep(unread)
		if before && typed(0) && mine() && !t.over.Load() {
			t.want(c)
			return
		}
	}
}

// foreground says whether the caller's terminal is this process's to read.
func (t *terminal) foreground() bool {
	group, err := unix.IoctlGetInt(int(t.keys.Fd()), unix.TIOCGPGRP)
	return err != nil && err != unix.EIO || err == nil && group == unix.Getpgrp() // not the controlling one: nobody else's
}

// hungUp says whether the caller's terminal is gone.
func (t *terminal) hungUp() bool {
	_, err := unix.IoctlGetInt(int(t.keys.Fd()), unix.TIOCGPGRP)
	return err == unix.EIO
}

// give makes the program the foreground of its terminal, and lets it go on.
func (t *terminal) give(c *child.Child) {
	t.mu.Lock()
	t.input = true
	if now := TerminalSettings(t.keys); now != nil && !t.raw {
		t.saved = now
	}
	t.mu.Unlock()
	t.makeRaw()
	t.resize()
	if peer, err := child.Peer(t.master); err == nil {
		_ = c.Foreground(c.Main(), int(peer.Fd()))
		peer.Close()
	}
	_ = c.Signal(-c.Main(), syscall.SIGCONT)
}

// drain waits for the last output: the master reads EIO once every process of the sandbox is gone.
func (t *terminal) drain() {
	if t.master == nil {
		return
	}
	t.over.Store(true)
	t.release()
	done := make(chan struct{})
	go func() { t.wg.Wait(); close(done) }()
	select {
	case <-done:
	case <-time.After(2 * time.Second):
	}
	t.restore()
}

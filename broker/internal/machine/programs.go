//go:build linux

package machine

import (
	"encoding/json"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"sbx.example/sbx/broker/plan"
)

// guest is process 1 of a guest, while programs run.
type guest struct {
	w        *writer
	mu       sync.Mutex
	programs map[uint32]*program
	byPID    map[int]*program
	over     chan struct{} // the first program has ended
}

// program is one that runs in the guest.
type program struct {
	g      *guest
	id     uint32
	pid    int
	input  *queue      // for its standard input
	in     *os.File    // nil: none
	output [3]*os.File // what it writes into; master of its terminal
	credit [3]*credit
	tty    *os.File
	pumps  sync.WaitGroup
	ended  chan unix.WaitStatus
}

// serveGuest does what the host says until the first program has ended.
func serveGuest(channel *os.File, w *writer) {
	g := &guest{w: w, programs: map[uint32]*program{}, byPID: map[int]*program{}, over: make(chan struct{})}
	go g.reap()
	if w.write(kindReady, 0) != nil {
		return
	}
	go func() {
		for {
			f, err := readFrame(channel, maxText)
			if err != nil || g.handle(f) != nil {
				halt() // the host has gone
				return
			}
		}
	}()
	<-g.over
}

// handle does what a frame says.
func (g *guest) handle(f frame) error {
	if f.kind == kindStart {
		var s Start
		if err := json.Unmarshal(f.body, &s); err != nil {
			return err
		}
		if err := g.start(f.program, s); err != nil {
			return g.exit(f.program, Exit{Status: refused, Error: err.Error()})
		}
		return nil
	}
	g.mu.Lock()
	p := g.programs[f.program]
	g.mu.Unlock()
	if p == nil {
		return nil // it has ended meanwhile
	}
	switch f.kind {
	case kindSignal:
		n, err := numbers(f.body, 1)
		if err == nil {
			_ = unix.Kill(-p.pid, unix.Signal(n[0]))
		}
		return err
	case kindSize:
		n, err := numbers(f.body, 2)
		if err == nil && p.tty != nil {
			resize(p.tty, n[0], n[1])
		}
		return err
	}
	i, rest, err := f.stream()
	if err != nil {
		return err
	}
	switch f.kind {
	case kindData:
		p.input.put(rest)
	case kindTaken:
		n, err := numbers(rest, 1)
		if err != nil {
			return err
		}
		p.credit[i].give(n[0])
	case kindClosed:
		p.credit[i].end()
		if f := p.output[i]; f != nil && f != p.tty {
			f.Close() // the next write ends it
		}
	}
	return nil
}

func (g *guest) exit(id uint32, e Exit) error {
	text, err := json.Marshal(e)
	if err != nil {
		return err
	}
	return g.w.write(kindExit, id, text)
}

// start starts a program and what carries its streams.
func (g *guest) start(id uint32, s Start) error {
	p := &program{g: g, id: id, input: newQueue(), ended: make(chan unix.WaitStatus, 1)}
	for i := range p.credit {
		p.credit[i] = newCredit()
	}
	files, err := p.streams(s)
	defer func() {
		for _, f := range files {
			if f != nil {
				f.Close()
			}
		}
	}()
	if err != nil {
		return err
	}
	if err = p.fork(s, files); err != nil {
		return err
	}
	for i, f := range p.output {
		if f != nil {
			p.pumps.Add(1)
			go p.pump(i, f)
		}
	}
	go p.feed()
	go p.wait()
	return nil
}

// streams makes the standard streams: the program's ends, which are closed once it has them.
func (p *program) streams(s Start) (files [3]*os.File, err error) {
	for i := range files {
		switch {
		case s.TTY[i]:
			if p.tty == nil {
				if err = p.terminal(s); err != nil {
					return files, err
				}
			}
			if files[i], err = p.slave(); err != nil {
				return files, err
			}
			if i == 0 {
				p.in = p.tty
			}
		case s.Null[i]:
			if files[i], err = os.OpenFile(os.DevNull, os.O_RDWR, 0); err != nil {
				return files, err
			}
		case i == 0:
			if files[0], p.in, err = os.Pipe(); err != nil {
				return files, err
			}
		case i == 2 && s.Joined:
			fd, err := unix.FcntlInt(files[1].Fd(), unix.F_DUPFD_CLOEXEC, 0)
			if err != nil {
				return files, err
			}
			files[2] = os.NewFile(uintptr(fd), "stderr")
		default:
			if p.output[i], files[i], err = os.Pipe(); err != nil {
				return files, err
			}
		}
		if files[i] != nil && !s.TTY[i] && !s.Null[i] {
			_ = files[i].Chown(int(s.UID), int(s.GID)) // so that it can be opened again: /dev/stdout
		}
	}
	return files, nil
}

// terminal makes the program's terminal. What comes from it is stream 1.
func (p *program) terminal(s Start) (err error) {
	if p.tty, err = os.OpenFile("/dev/pts/ptmx", os.O_RDWR|unix.O_NOCTTY, 0); err != nil {
		return err
	}
	p.output[1] = p.tty
	fd := int(p.tty.Fd())
	if err = unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0); err != nil {
		return err
	}
	if s.Termios != nil {
		_ = unix.IoctlSetTermios(fd, unix.TCSETS, s.Termios)
	}
	resize(p.tty, s.Rows, s.Columns)
	slave, err := p.slave()
	if err != nil {
		return err
	}
	defer slave.Close()
	return slave.Chown(int(s.UID), int(s.GID))
}

func (p *program) slave() (*os.File, error) {
	n, err := unix.IoctlGetInt(int(p.tty.Fd()), unix.TIOCGPTN)
	if err != nil {
		return nil, err
	}
	return os.OpenFile("/dev/pts/"+strconv.Itoa(n), os.O_RDWR|unix.O_NOCTTY, 0)
}

func resize(tty *os.File, rows, columns uint32) {
	_ = unix.IoctlSetWinsize(int(tty.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: uint16(rows), Col: uint16(columns)})
}

// fork starts sbx once more, which becomes the program.
func (p *program) fork(s Start, files [3]*os.File) error {
	rest := s
	rest.Argv, rest.Env, rest.Termios = nil, nil, nil
	text, err := json.Marshal(rest)
	if err != nil {
		return err
	}
	attr := &syscall.ProcAttr{Dir: "/", Env: plan.StringsOf(s.Env), Files: make([]uintptr, 3),
		Sys: &syscall.SysProcAttr{Setsid: true}}
	for i, f := range files {
		attr.Files[i] = f.Fd()
		if s.TTY[i] && !attr.Sys.Setctty {
			attr.Sys.Setctty, attr.Sys.Ctty = true, i
		}
	}
	p.g.mu.Lock()
	defer p.g.mu.Unlock()
	p.pid, err = syscall.ForkExec("/proc/self/exe", append([]string{startName, string(text)},
		plan.StringsOf(s.Argv)...), attr)
	if err != nil {
		return fmt.Errorf("starting a program: %w", err)
	}
	p.g.programs[p.id], p.g.byPID[p.pid] = p, p
	return nil
}

// reap waits for whatever ends in the guest.
func (g *guest) reap() {
	for {
		var st unix.WaitStatus
		pid, err := unix.Wait4(-1, &st, 0, nil)
		switch {
		case err == unix.ECHILD:
			time.Sleep(pause)
			continue
		case err != nil:
			continue
		}
		g.mu.Lock()
		p := g.byPID[pid]
		delete(g.byPID, pid)
		g.mu.Unlock()
		if p != nil {
			p.ended <- st
		}
	}
}

// feed writes the program's input.
func (p *program) feed() {
	if p.in != nil && p.in != p.tty {
		defer p.in.Close()
	}
	for b := p.input.get(); len(b) > 0; b = p.input.get() {
		if p.in != nil {
			if _, err := p.in.Write(b); err != nil {
				_ = p.g.w.write(kindClosed, p.id, []byte{0})
				return
			}
		}
		_ = p.g.w.write(kindTaken, p.id, []byte{0}, packed(uint32(len(b))))
	}
}

// pump sends what the program writes into a stream.
func (p *program) pump(i int, f *os.File) {
	defer p.pumps.Done()
	buf := make([]byte, maxPiece)
	for {
		n, err := f.Read(buf)
		if n > 0 && (!p.credit[i].take(n) || p.g.w.write(kindData, p.id, []byte{byte(i)}, buf[:n]) != nil) || err != nil {
			return
		}
	}
}

// lastWords is how long what a program has left running may go on writing into its streams.
const lastWords = 300 * time.Millisecond

// wait tells the host of the program's end, once all that it wrote has been sent. With the first one all others end.
func (p *program) wait() {
	st := <-p.ended
	done := make(chan struct{})
	go func() { p.pumps.Wait(); close(done) }()
	e := Exit{Status: st.ExitStatus()}
	if st.Signaled() {
		e.Status, e.Signal = 128+int(st.Signal()), int(st.Signal())
	}
	if p.id == first {
		_ = unix.Kill(-1, unix.SIGKILL)
		<-done
		unix.Sync()
		_ = p.g.exit(p.id, e)
		close(p.g.over)
		return
	}
	select {
	case <-done:
	case <-time.After(lastWords):
	}
	p.g.mu.Lock()
	delete(p.g.programs, p.id)
	p.g.mu.Unlock()
	p.input.put(nil)
	for i, f := range append(p.output[:], p.tty) {
		if f != nil {
			f.Close() // what reads it sends nothing more
		}
		p.credit[min(i, 2)].end()
	}
	p.pumps.Wait()
	_ = p.g.exit(p.id, e)
}

// startMain is sbx as the last step before a program: it gives up what the program is not to have, and becomes it.
func startMain(args []string, stderr *os.File) int {
	runtime.LockOSThread()
	var s Start
	if err := json.Unmarshal([]byte(args[1]), &s); err != nil || len(args) < 3 {
		fmt.Fprintln(stderr, "sbx: starting a program:", err)
		return refused
	}
	if err := s.giveUp(); err != nil {
		fmt.Fprintln(stderr, "sbx: starting a program:", err)
		return refused
	}
	status, why := become(args[2:], os.Environ())
	fmt.Fprintf(stderr, "sbx: %s: %s\n", plan.Bytes(args[2]).Quote(), why)
	return status
}

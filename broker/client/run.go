//go:build linux

package client

import (
	"errors"
	"fmt"
	"io"
	"os"
	"reflect"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"sbx.example/sbx/broker/internal/control"
	"sbx.example/sbx/broker/internal/handover"
	"sbx.example/sbx/broker/plan"
)

// Programs is a connection for starting programs. Close sends SIGHUP to the one that runs; Signal may be called while
// Run waits.
type Programs struct{ *control.ExecClient }

// Command is a program that is to run in a session, as confined as the session's first one.
type Command struct {
	Argv []string // a name without a slash is looked for inside
	Env  []string // added to the session's environment
	Dir  string   // a directory inside; empty: where the session started
	// NoLinks has no link on the way to Dir followed: it is no directory then.
	NoLinks bool

	// Nil is the null device. Pipes and new files opened for writing are handed to the program itself; everything else is
	// copied. If Stdout and Stderr are one writer that can be compared with ==, what is written to both has one order.
	Stdin          io.Reader
	Stdout, Stderr io.Writer

	// Started, if set, is told the pid inside, by which the program can be signalled. A program that is over at once may
	// have none.
	Started func(pid int)
	// Ended, if set, is called when the program has ended, before the last of its output is copied.
	Ended func()
	// Terminal, if set, gives the program a terminal of Rows by Cols instead of the three above, and is told its master,
	// which becomes its own to close.
	Terminal   func(master *os.File)
	Rows, Cols int

	// Asked and Told, if set, hear of each question of the session's that waits, whoever asks it, and of lines for people.
	Asked func(*Question)
	Told  func(string)

	file *FileRequest // instead of Argv
}

// ErrEnded says that the session ended before the program did.
var ErrEnded = errors.New("the session ended")

// Run starts a program and waits for its end, and until everything is copied that it wrote.
func (p Programs) Run(c Command) (*End, error) {
	e := control.Exec{Argv: plan.BytesOf(c.Argv), Env: plan.BytesOf(c.Env), Cwd: plan.Bytes(c.Dir), NoLinks: c.NoLinks,
		TTY: c.Terminal != nil, Rows: c.Rows, Cols: c.Cols, File: c.file}
	var pipes pipes
	defer pipes.close()
	if !e.TTY {
		if err := pipes.open(&e, c); err != nil {
			return nil, err
		}
	}
	if err := p.Exec(e); err != nil {
		return nil, err
	}
	pipes.start()
	end, err := p.Wait(c)
	if c.Ended != nil {
		c.Ended()
	}
	pipes.finish()
	return end, err
}

// Wait is the second half of Run, for a program that was asked for already.
func (p Programs) Wait(c Command) (*End, error) {
	for {
		ev, err := p.NextExec()
		switch {
		case errors.Is(err, io.EOF):
			return nil, ErrEnded
		case err != nil:
			return nil, err
		case ev.End != nil:
			return ev.End, nil
		}
		if ev.Question != nil && c.Asked != nil {
			c.Asked(ev.Question)
		}
		if ev.Notice != "" && c.Told != nil {
			c.Told(ev.Notice)
		}
		if ev.Pty != nil && c.Terminal != nil {
			c.Terminal(ev.Pty)
		}
		if ev.Started && c.Started != nil {
			c.Started(ev.PID)
		}
	}
}

// pipes stand for what cannot be handed into a sandbox: what handover refuses, and what is no file.
type pipes struct {
	from   io.Reader
	to     [3]io.Writer
	theirs [3]*os.File // closed once they were handed over
	ours   [3]*os.File
	loan   *handover.Loan // of the program's standard input
	wg     sync.WaitGroup
}

// open fills in e.Files.
func (p *pipes) open(e *control.Exec, c Command) error {
	p.from, p.to = c.Stdin, [3]io.Writer{nil, c.Stdout, c.Stderr}
	for i, x := range [3]any{c.Stdin, c.Stdout, c.Stderr} {
		f, _ := x.(*os.File)
		var err error
		switch {
		// What is written to a file is the pipe itself: the end of one of ours would come where this process is killed.
		case f != nil && (handover.Direct(i, f) || c.file != nil && handover.Check(i, int(f.Fd())) == nil):
			e.Files[i] = f
			continue
		case i == 2 && p.ours[1] != nil && same(c.Stdout, c.Stderr):
			e.Files[2] = e.Files[1]
			continue
		case x == nil:
			p.theirs[i], err = os.OpenFile(os.DevNull, os.O_RDWR, 0)
		case i == 0:
			p.theirs[i], p.ours[i], err = os.Pipe()
		default:
			p.ours[i], p.theirs[i], err = os.Pipe()
		}
		if err != nil {
			return fmt.Errorf("making a pipe for descriptor %d: %w", i, err)
		}
		e.Files[i] = p.theirs[i]
	}
	return nil
}

// same says whether two writers are one.
func same(a, b io.Writer) bool {
	x, file := a.(*os.File)
	y, other := b.(*os.File)
	if file && other {
		return handover.Same(x, y)
	}
	v, w := reflect.ValueOf(a), reflect.ValueOf(b)
	return v.IsValid() && w.IsValid() && v.Comparable() && w.Comparable() && a == b
}

// start copies, once the other ends have been handed over.
func (p *pipes) start() {
	for i, f := range p.theirs {
		if f != nil {
			f.Close()
			p.theirs[i] = nil
		}
		if p.ours[i] == nil {
			continue
		}
		if i == 0 {
			p.loan = handover.Feed(p.from, p.ours[0])
			continue
		}
		p.wg.Add(1)
		go func() {
			defer p.wg.Done()
			p.copy(i)
		}()
	}
}

// copy passes on what comes until the end of the stream, or until finish and nothing is left: what the
// program has written is in the pipe when it has ended; its children may hold the pipe open for ever.
func (p *pipes) copy(i int) {
	buf := make([]byte, 64<<10)
	for {
		n, err := p.ours[i].Read(buf)
		if _, werr := p.to[i].Write(buf[:n]); werr != nil { // the program's next write fails, too
			p.ours[i].Close()
			return
		}
		if err == nil {
			continue
		}
		if !os.IsTimeout(err) {
			return
		}
		rc, err := p.ours[i].SyscallConn()
		if err != nil {
			return
		}
		_ = rc.Control(func(fd uintptr) {
			for {
				n, err := unix.Read(int(fd), buf)
				if n <= 0 && err != unix.EINTR {
					return
				}
				if _, werr := p.to[i].Write(buf[:max(n, 0)]); werr != nil {
					return
				}
			}
		})
		return
	}
}

func (p *pipes) finish() {
	p.endLoan()
	for i := 1; i < 3; i++ {
		if p.ours[i] != nil {
			_ = p.ours[i].SetReadDeadline(time.Unix(1, 0))
		}
	}
	p.wg.Wait()
}

// endLoan has who reads the caller's pipe next find what the program has left.
func (p *pipes) endLoan() {
	p.loan.End()
	p.loan = nil
}

// close lets go of what is left; the one that is written to belongs to whoever copies.
func (p *pipes) close() {
	p.endLoan()
	for i := range p.ours {
		if p.theirs[i] != nil {
			p.theirs[i].Close()
		}
		if p.ours[i] != nil {
			p.ours[i].Close()
		}
	}
}

// Programs connects to a session to start programs in it. One connection is good for any number of them, one after the
// other; those that run at once want one each.
func (s Sessions) Programs(sid string) (Programs, error) {
	c, err := control.DialExec(s.dir, sid)
	return Programs{c}, err
}

// Resume takes a connection for starting programs over, on which got has come already.
func Resume(fd int, got []byte) Programs { return Programs{control.ResumeExec(fd, got)} }

package cli

import (
	"fmt"
	"io"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"sbx/broker/internal/control"
	"sbx/broker/internal/host"
	"sbx/broker/internal/launch"
	"sbx/shared/plan"
)

// pipes stand for those descriptors of the caller's that cannot be handed into a sandbox: files that were
// opened for reading, terminals, sockets.
type pipes struct {
	caller [3]*os.File
	to     [3]io.Writer // where 1 and 2 are copied to
	theirs [3]*os.File
	ours   [3]*os.File
	wg     sync.WaitGroup
}

// newPipes fills in e.Files.
func newPipes(e *control.Exec, std [3]*os.File) (*pipes, error) {
	p := &pipes{caller: std}
	for i, f := range std {
		e.Files[i] = f
		if f == nil || launch.Passable(i, f) {
			continue
		}
		p.to[i] = f
		if err := p.open(e, i); err != nil {
			return nil, err
		}
	}
	for i, f := range e.Files {
		if f != nil {
			continue
		}
		null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
		if err != nil {
			return nil, err
		}
		e.Files[i] = null
	}
	return p, nil
}

// keep has descriptors 1 and 2 written to kept.
func (p *pipes) keep(e *control.Exec, kept [3]*keeper) error {
	for i := 1; i < 3; i++ {
		p.to[i] = kept[i]
		if err := p.open(e, i); err != nil {
			return err
		}
	}
	return nil
}

func (p *pipes) open(e *control.Exec, i int) error {
	r, w, err := os.Pipe()
	if err != nil {
		return fmt.Errorf("making a pipe for descriptor %d: %w", i, err)
	}
	if i == 0 {
		p.theirs[i], p.ours[i] = r, w
	} else {
		p.theirs[i], p.ours[i] = w, r
	}
	e.Files[i] = p.theirs[i]
	return nil
}

// start copies, once the other ends have been handed over.
func (p *pipes) start() {
	for i, f := range p.theirs {
		if f != nil {
			f.Close()
		}
		if p.ours[i] == nil {
			continue
		}
		if i == 0 {
			go func() {
				_, _ = io.Copy(p.ours[0], p.caller[0])
				p.ours[0].Close()
			}()
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
		_, _ = p.to[i].Write(buf[:n])
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
				_, _ = p.to[i].Write(buf[:max(n, 0)])
			}
		})
		return
	}
}

func (p *pipes) finish() {
	for i := 1; i < 3; i++ {
		if p.ours[i] != nil {
			_ = p.ours[i].SetReadDeadline(time.Unix(1, 0))
		}
	}
	p.wg.Wait()
}

// execTTY joins the caller's terminal to one of the sandbox's. Keys reach the program's terminal as they are
// typed: Ctrl-C and Ctrl-Z are that terminal's.
func (t *term) execTTY(c *control.ExecClient, e control.Exec) int {
	in, out := t.std[0], t.std[1]
	saved := launch.TerminalSettings(in)
	e.TTY = true
	rows, cols := launch.Size(out)
	e.Rows, e.Cols = int(rows), int(cols)
	if v := host.Lookup(t.env, "TERM"); v != "" {
		e.Env = append([]plan.Bytes{plan.Bytes("TERM=" + v)}, e.Env...)
	}
	signals := passSignals(c)
	if err := c.Exec(e); err != nil {
		return t.execFailed(err)
	}
	drained := make(chan struct{})
	joined := false
	end, err := t.await(c, signals, func(ev control.ExecEvent) {
		if ev.Pty == nil {
			return
		}
		joined = true
		if saved != nil {
			_ = saved.Apply(ev.Pty)
			_ = saved.Raw().Apply(in)
		}
		resize := make(chan os.Signal, 1)
		signal.Notify(resize, syscall.SIGWINCH)
		go func() {
			for range resize {
				rows, cols := launch.Size(out)
				launch.SetSize(ev.Pty, rows, cols)
			}
		}()
		resize <- syscall.SIGWINCH // it may have changed meanwhile
		go func() {
			_, _ = io.Copy(struct{ io.Writer }{out}, struct{ io.Reader }{ev.Pty})
			close(drained)
		}()
		go func() { _, _ = io.Copy(struct{ io.Writer }{ev.Pty}, struct{ io.Reader }{in}) }()
	})
	if joined { // the terminal is hung up when its session's first process has ended
		select {
		case <-drained:
		case <-time.After(2 * time.Second):
		}
	}
	if saved != nil {
		_ = saved.Apply(in)
	}
	return t.execEnd(&execRequest{argv: stringsOf(e.Argv)})(end, err)
}

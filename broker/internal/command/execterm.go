package command

import (
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"sbx/broker/client"
	"sbx/broker/internal/host"
	"sbx/broker/internal/launch"
)

// execTTY joins the caller's terminal to one of the sandbox's. Keys reach the program's terminal as they are
// typed: Ctrl-C and Ctrl-Z are that terminal's.
func (t *Term) execTTY(c client.Programs, q *execRequest, e client.Command) int {
	in, out := t.Std[0], t.Std[1]
	saved := launch.TerminalSettings(in)
	rows, cols := launch.Size(out)
	e.Rows, e.Cols = int(rows), int(cols)
	if v := host.Lookup(t.Env, "TERM"); v != "" {
		e.Env = append([]string{"TERM=" + v}, e.Env...)
	}
	drained := make(chan struct{})
	joined := false
	e.Terminal = func(pty *os.File) {
		joined = true
		if saved != nil {
			_ = saved.Apply(pty)
			_ = saved.Raw().Apply(in)
		}
		resize := make(chan os.Signal, 1)
		signal.Notify(resize, syscall.SIGWINCH)
		go func() {
			for range resize {
				rows, cols := launch.Size(out)
				launch.SetSize(pty, rows, cols)
			}
		}()
		resize <- syscall.SIGWINCH // it may have changed meanwhile
		go func() {
			_, _ = io.Copy(struct{ io.Writer }{out}, struct{ io.Reader }{pty})
			close(drained)
		}()
		go func() { _, _ = io.Copy(struct{ io.Writer }{pty}, struct{ io.Reader }{in}) }()
	}
	end, err := c.Run(e)
	if joined { // the terminal is hung up when its session's first process has ended
		select {
		case <-drained:
		case <-time.After(2 * time.Second):
		}
	}
	if saved != nil {
		_ = saved.Apply(in)
	}
	return t.execEnd(q)(end, err)
}

//go:build linux

package command

import (
	"os"
	"os/signal"
	"syscall"
	"time"

	"sbx.example/sbx/broker/client"
	"sbx.example/sbx/broker/internal/attend"
	"sbx.example/sbx/broker/internal/host"
	"sbx.example/sbx/broker/internal/launch"
)

// execTTY joins the caller's terminal to one of the sandbox's. Keys reach the program's terminal as they are
// typed: Ctrl-C and Ctrl-Z are that terminal's.
func (t *Term) execTTY(c client.Programs, q *execRequest, e client.Command, a *attend.Asker) int {
	in, out := t.Std[0], t.Std[1]
	saved := launch.TerminalSettings(in)
	rows, cols := launch.Size(out)
	e.Rows, e.Cols = int(rows), int(cols)
	if v := host.Lookup(t.Env, "TERM"); v != "" {
		e.Env = append([]string{"TERM=" + v}, e.Env...)
	}
	drained := make(chan struct{})
	joined, release := false, func() {}
	e.Terminal = func(pty *os.File) {
		joined, release = true, launch.HoldOpen(pty)
		if saved != nil {
			_ = launch.SetTerminal(pty, saved)
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
		input, output := a.Join(in, out, pty)
		go func() {
			output()
			close(drained)
		}()
		go input(func() {
			if saved != nil {
				_ = launch.MakeRaw(in)
			}
		})
	}
	e.Ended = a.Stop // and no signal ends this process before the caller's terminal is as it was
	end, err := c.Run(e)
	release()
	if joined { // the terminal is hung up when its session's first process has ended
		select {
		case <-drained:
		case <-time.After(2 * time.Second):
		}
	}
	a.Stop()
	if saved != nil {
		_ = launch.SetTerminal(in, saved)
	}
	return t.execEnd(q)(end, err)
}

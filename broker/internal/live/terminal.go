//go:build linux

package live

import (
	"context"
	"os"
	"sync/atomic"

	"sbx.example/sbx/broker/internal/launch"
	"sbx.example/sbx/broker/internal/prompt"
)

// terminalPrompt asks a session's questions on the terminal that it was started from.
type terminalPrompt struct {
	dev    *os.File // the controlling terminal, where standard input is something else
	word   string   // marks true questions; the program cannot see it
	screen prompt.Screen
	ready  atomic.Bool // screen is there
	ctx    context.Context
	stop   context.CancelFunc
	done   <-chan struct{} // closed when no question can be drawn any more
}

// findTerminal says where a person could be asked; nil is nowhere.
func (b *Broker) findTerminal(mode prompt.Mode) *terminalPrompt {
	if b.Answer != nil || mode != prompt.Auto && mode != prompt.TTYOnly || b.leadsOn(mode) {
		return nil
	}
	o := &terminalPrompt{word: prompt.NewWord()}
	if !launch.HasTerminal([3]*os.File{b.Std[0], nil, nil}) {
		if o.dev = launch.ControllingTerminal(); o.dev == nil {
			return nil
		}
	}
	o.ctx, o.stop = context.WithCancel(context.Background())
	return o
}

// answeredFrom is from where answers count, as --prompt says it; "": nothing is asked.
func (a *approvals) answeredFrom() string {
	if a == nil {
		return ""
	}
	return string(a.mode)
}

// leadsOn says whether what the program writes may come to the terminal by a way on which it does not wait for an
// answer, and change a question there. --prompt tty has it asked there nonetheless.
func (b *Broker) leadsOn(mode prompt.Mode) bool {
	return mode == prompt.Auto && (launch.LeadsOn(b.Std[1]) || launch.LeadsOn(b.Std[2]))
}

// unasked says whether a person is at the terminal who is not asked there for that reason.
func (b *Broker) unasked(mode prompt.Mode) bool {
	if b.Answer != nil || !b.leadsOn(mode) {
		return false
	}
	dev := launch.ControllingTerminal()
	if dev != nil {
		dev.Close()
	}
	return dev != nil
}

// join is launch.Options.Join: the broker owns the terminal, the program one of its own.
func (a *approvals) join(keys, out, guest *os.File, taking func()) (input, output func()) {
	o := a.terminal
	if keys != nil && taking == nil {
		c := &prompt.Console{Keys: keys, Out: out, Guest: guest}
		o.screen = c
		a.serveTerminal()
		return c.CopyInput, c.CopyOutput
	}
	if o.dev != nil {
		keys = o.dev
	}
	d := a.devTTY(keys, out, guest)
	o.screen = d
	a.serveTerminal()
	return func() { d.CopyInput(taking) }, d.CopyOutput
}

func (a *approvals) devTTY(keys, out, guest *os.File) *prompt.DevTTY {
	return &prompt.DevTTY{Console: prompt.Console{Keys: keys, Out: out, Guest: guest},
		Always: a.mode == prompt.TTYOnly, Group: a.svc.interrupt}
}

// joiner joins the terminals. Where nothing is asked on the caller's, sbx has a word to say there all the same.
func (a *approvals) joiner() launch.Join {
	if a != nil && a.terminal != nil {
		return a.join
	}
	return func(keys, out, guest *os.File, taking func()) (input, output func()) {
		input, _ = launch.PlainJoin(keys, out, guest, taking)
		return input, (&prompt.Console{Out: out, Guest: guest}).CopyOutput
	}
}

// askWithoutPty shows questions on the controlling terminal of a program that has none of its own.
func (a *approvals) askWithoutPty() {
	if o := a.terminal; o != nil && o.dev != nil && !a.in.TTY {
		o.screen = a.devTTY(o.dev, o.dev, nil)
		a.serveTerminal()
	}
}

// serveTerminal shows the questions until the session ends.
func (a *approvals) serveTerminal() {
	o := a.terminal
	o.ready.Store(true)
	tty := &prompt.TTY{Screen: o.screen, Style: prompt.Style{Word: o.word, Home: a.in.Facts.Home}}
	o.done = tty.Start(o.ctx, a.arb.Queue())
}

// close takes a question off the terminal and gives it back as it was.
func (o *terminalPrompt) close() {
	if o == nil {
		return
	}
	o.stop()
	if o.done != nil {
		<-o.done
	}
	if o.dev != nil {
		o.dev.Close()
	}
}

// shows says whether a question would be seen on the terminal now.
func (o *terminalPrompt) shows() bool {
	if o == nil || !o.ready.Load() {
		return false
	}
	d, ok := o.screen.(*prompt.DevTTY)
	return !ok || d.Usable()
}

package live

import (
	"context"
	"os"
	"sync/atomic"

	"golang.org/x/sys/unix"

	"sbx/broker/internal/launch"
	"sbx/broker/internal/prompt"
)

// onTerminal is the asking of a session's questions on the terminal that it was started from.
type onTerminal struct {
	dev    *os.File // the controlling terminal, where standard input is something else
	word   string   // marks true questions; the program cannot see it
	screen prompt.Screen
	ready  atomic.Bool // screen is there
	ctx    context.Context
	stop   context.CancelFunc
	done   chan struct{} // closed when no question can be drawn any more
}

// findTerminal says where a person could be asked; nil is nowhere.
func (b *Broker) findTerminal(mode prompt.Mode) *onTerminal {
	if b.Answer != nil || mode != prompt.Auto && mode != prompt.TTYOnly {
		return nil
	}
	o := &onTerminal{word: prompt.NewWord()}
	if !launch.HasTerminal([3]*os.File{b.Std[0], nil, nil}) {
		f, err := os.OpenFile("/dev/tty", os.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
		if err != nil {
			return nil // no controlling terminal
		}
		// A job in the background is not asked: nobody looks at it.
		if pg, err := unix.IoctlGetInt(int(f.Fd()), unix.TIOCGPGRP); err != nil || pg != unix.Getpgrp() {
			f.Close()
			return nil
		}
		o.dev = f
	}
	o.ctx, o.stop = context.WithCancel(context.Background())
	return o
}

// join is launch.Options.Join: the broker owns the terminal, the program one of its own.
func (a *asking) join(keys, out, guest *os.File, taking func()) (input, output func()) {
	o := a.onTerminal
	if keys != nil && taking == nil {
		c := &prompt.Console{Keys: keys, Out: out, Guest: guest}
		o.screen = c
		a.serveTerminal()
		return c.CopyInput, c.CopyOutput
	}
	if o.dev != nil {
		keys = o.dev
	}
	d := &prompt.DevTTY{Console: prompt.Console{Keys: keys, Out: out, Guest: guest}, Always: a.mode == prompt.TTYOnly}
	o.screen = d
	a.serveTerminal()
	return func() { d.CopyInput(taking) }, d.CopyOutput
}

// joiner is nil where questions are not asked on the terminal.
func (a *asking) joiner() launch.Join {
	if a == nil || a.onTerminal == nil {
		return nil
	}
	return a.join
}

// askWithoutPty shows questions on the controlling terminal of a program that has none of its own.
func (a *asking) askWithoutPty() {
	if o := a.onTerminal; o != nil && o.dev != nil && !a.in.TTY {
		o.screen = &prompt.DevTTY{Console: prompt.Console{Keys: o.dev, Out: o.dev}, Always: a.mode == prompt.TTYOnly}
		a.serveTerminal()
	}
}

// serveTerminal shows the questions until the session ends.
func (a *asking) serveTerminal() {
	o := a.onTerminal
	o.done = make(chan struct{})
	o.ready.Store(true)
	tty := &prompt.TTY{Screen: o.screen, Style: prompt.Style{Word: o.word, Home: a.in.Facts.Home}}
	go func() {
		defer close(o.done)
		tty.Serve(o.ctx, a.arb.Queue())
	}()
}

// close takes a question off the terminal and gives it back as it was.
func (o *onTerminal) close() {
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
func (o *onTerminal) shows() bool {
	if o == nil || !o.ready.Load() {
		return false
	}
	d, ok := o.screen.(*prompt.DevTTY)
	return !ok || d.Usable()
}

//go:build linux

package tools

import (
	"context"
	"errors"
	"os"
	"sync"

	"sbx.example/sbx/audit"
	"sbx.example/sbx/broker/client"
	"sbx.example/sbx/broker/internal/request"
)

// Box is a sandbox that stands for the calls of one tool.
type Box struct {
	SID  string
	Over <-chan struct{} // closed when it has ended
}

// box is one that was started, or is being.
type box struct {
	name    string
	stands  chan struct{} // closed when Box or err is set
	Box     *Box
	err     error
	stop    context.CancelFunc
	calls   int  // that run in it
	retired bool // no other call is run in it
}

// enter finds the box of a tool, or starts one.
func (c *Calls) enter(t Tool) *box {
	c.mu.Lock()
	defer c.mu.Unlock()
	b := c.boxes[t.Name]
	if b == nil || b.retired || b.over() {
		b = c.open(t.Name, request.ForTool(t.Tool, c.Project, t.Program(), c.Home, c.Linkable))
	}
	b.calls++
	return b
}

// spawn starts a box that is left with its only call.
func (c *Calls) spawn(q *request.Request) *box {
	c.mu.Lock()
	defer c.mu.Unlock()
	b := c.open(q.Name, q)
	b.calls, b.retired = 1, true
	return b
}

// open starts a box; c.mu is held.
func (c *Calls) open(name string, q *request.Request) *box {
	ctx, stop := context.WithCancel(c.Context)
	b := &box{name: name, stands: make(chan struct{}), stop: stop}
	if c.boxes == nil {
		c.boxes = map[string]*box{}
	}
	c.boxes[name] = b
	c.running.Add(1)
	go func() {
		defer c.running.Done()
		b.Box, b.err = c.Start(ctx, q)
		close(b.stands)
		if b.err == nil {
			<-b.Box.Over
		} else {
			_, _ = c.Log.Note(audit.Event{Kind: audit.KindError, UID: os.Getuid(), Op: "run", Path: q.Name,
				Reason: b.err.Error()})
		}
	}()
	return b
}

// over says whether it has ended by itself.
func (b *box) over() bool {
	select {
	case <-b.stands:
	default:
		return false
	}
	if b.err != nil {
		return true
	}
	select {
	case <-b.Box.Over:
		return true
	default:
		return false
	}
}

// leave ends a box that is to be used no more, with everything in it, when its last call has ended.
func (c *Calls) leave(b *box, retire bool) {
	c.mu.Lock()
	b.calls--
	b.retired = b.retired || retire
	last := b.retired && b.calls == 0
	if last && c.boxes[b.name] == b {
		delete(c.boxes, b.name)
	}
	c.mu.Unlock()
	if last {
		b.stop()
	}
}

// killer ends a program in a box, as soon as it is known which it is.
type killer struct {
	p    client.Programs
	mu   sync.Mutex
	pid  int
	over bool
}

func (k *killer) started(pid int) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.pid = pid
	k.end()
}

func (k *killer) kill() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.over = true
	k.end()
}

func (k *killer) end() {
	if k.over && k.pid != 0 {
		_ = k.p.Signal(k.pid, "KILL") // fails where it has ended
	}
}

// errBox is what a caller is told, who is not to know more.
var errBox = errors.New("its sandbox could not be built: the session's record says why")

// runInBox runs argv in a box. A call that is ended takes what it has left behind with it.
func (c *Calls) runInBox(ctx context.Context, b *box, r *running, argv []string) (int, error) {
	retire := false
	defer func() { c.leave(b, retire) }()
	select {
	case <-b.stands:
	case <-ctx.Done():
		return refused, ctx.Err()
	}
	if b.err != nil {
		retire = true
		return refused, errBox
	}
	if err := c.CarryLabels(ctx, r.call.PID, r.tool, b.Box.SID); err != nil {
		return refused, err
	}
	p, err := c.Find(b.Box.SID)
	if err != nil {
		retire = true
		return refused, errBox
	}
	defer p.Close()
	k := &killer{p: p}
	defer context.AfterFunc(ctx, k.kill)()
	cmd := client.Command{Argv: argv, Dir: r.call.Dir, NoLinks: true, Stdout: r.out, Stderr: r.errs, Started: k.started}
	if r.tool.Stdin {
		cmd.Stdin = r.in
	}
	end, err := p.Run(cmd)
	retire = ctx.Err() != nil || err != nil
	switch {
	case err != nil:
		return refused, err
	case end.Error != "":
		return end.Status, errors.New(end.Error)
	}
	return end.Status, nil
}

//go:build linux

package live

import (
	"cmp"
	"context"
	"errors"
	"os"
	"slices"

	"sbx.example/sbx/broker/client"
	"sbx.example/sbx/broker/internal/decide"
	"sbx.example/sbx/broker/internal/doors"
	"sbx.example/sbx/broker/internal/host"
	"sbx.example/sbx/broker/internal/planner"
	"sbx.example/sbx/broker/internal/policy"
	"sbx.example/sbx/broker/internal/program"
	"sbx.example/sbx/broker/internal/request"
	"sbx.example/sbx/broker/internal/tools"
)

// newTools has calls of tools judged as the session judges, and recorded where it records.
func (x *attempt) newTools(s doors.Session) *tools.Calls {
	env := x.b.Env
	at := client.At(host.Lookup(env, "XDG_RUNTIME_DIR"), host.Lookup(env, "XDG_STATE_HOME"), x.facts.Home)
	ctx, cancel := context.WithCancel(x.b.context())
	return &tools.Calls{Context: ctx, Cancel: cancel, Tools: x.r.doors.Found, Project: x.in.Project, Log: s.Log,
		Ask: s.Ask, Held: x.heldByLabels,
		Marked: func(pid int, tool, words string) bool {
			x.credentials.Stray("arguments of a tool", decide.Tools+"/"+tool, words)
			return x.marked(func() int { return pid }, "the arguments of tool", tool, words)
		}, CarryLabels: x.carryToolLabels, Session: &x.r.Request, Home: x.facts.Home, Linkable: request.Linkable(x.in),
		Env:     program.Environment(env),
		Refused: s.Refused("the tools"), Start: x.startBeside, Find: at.Programs}
}

// startBeside starts a sandbox without a program, in this process, and returns when it stands.
func (x *attempt) startBeside(ctx context.Context, q *request.Request) (*tools.Box, error) {
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	stood, over := make(chan string, 1), make(chan struct{})
	quiet := func(string) {}
	b := &Broker{Env: x.b.Env, Std: [3]*os.File{null, null, null}, Context: ctx, Idle: true,
		Stood: func(sid string) { stood <- sid }, Warn: quiet, Note: quiet, Notices: func([]policy.Notice) {},
		Lost: func(losses []planner.Loss) { x.lostBeside(q.Name, losses) }}
	q.Strict = x.r.strict
	go func() {
		defer close(over)
		defer null.Close()
		_, err = b.Run(*q)
	}()
	select {
	case sid := <-stood:
		return &tools.Box{SID: sid, Over: over}, nil
	case <-over:
		err = cmp.Or(err, errors.New("it ended at once"))
	}
	if ctx.Err() == nil {
		x.b.Warn("the sandbox " + q.Name + ": " + err.Error())
	}
	return nil, err
}

// lostBeside says what a sandbox beside this session lacks, but for what the session lacks as well.
func (x *attempt) lostBeside(name string, losses []planner.Loss) {
	if x.r.Quiet {
		return
	}
	for _, l := range losses {
		if !slices.Contains(x.losses, l) {
			x.b.Warn("the sandbox " + name + ": " + l.String())
		}
	}
}

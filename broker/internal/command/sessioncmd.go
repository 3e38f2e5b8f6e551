package command

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"sbx.example/sbx/broker/client"
	"sbx.example/sbx/broker/internal/control"
	"sbx.example/sbx/broker/internal/host"
	"sbx.example/sbx/broker/internal/option"
	"sbx.example/sbx/broker/internal/planner"
)

// Kill is sbx kill.
func (t *Term) Kill() Row {
	return Row{
		Command: option.Command{Name: "kill", Aliases: []string{"stop"}, Args: "[--signal NAME] SID...",
			Full: "[--signal NAME] [--pid PID] SID...",
			Help: "end sessions, or send a signal to a program",
			Text: "Ends sessions: everything in them is gone when it returns. With --signal, or --pid, it sends a signal " +
				"(TERM)\n" +
				"to a session's first program, or to the one that is PID inside, and to its process group.",
			Words: []option.Word{{From: option.Session}}},
		Begin: func([]string) ([]option.Option, func([]string) int) {
			var q killRequest
			return q.options(), func(sids []string) int { return t.kill(&q, sids) }
		},
	}
}

// killRequest is what sbx kill is asked for.
type killRequest struct {
	signal string
	pid    int
	json   bool
}

func (q *killRequest) options() []option.Option {
	return []option.Option{
		{Name: "signal", Arg: "NAME", Help: "send this signal", Value: option.Func(func(v string) error {
			q.signal = v
			_, err := control.Signal(v)
			return err
		}).Suggest("TERM", "INT", "HUP", "KILL", "STOP", "CONT", "QUIT", "USR1", "USR2")},
		{Name: "pid", Arg: "PID", Help: "to the program that is PID inside", Value: option.Func(func(v string) error {
			n, err := strconv.ParseUint(v, 10, 22)
			if err != nil || n < 2 {
				return option.Wrong(quote(v)+" is not a pid of the sandbox's programs", "sbx ps SID shows them")
			}
			q.pid = int(n)
			return nil
		})},
		JSON(&q.json),
	}
}

// kill ends sessions or signals programs in them.
func (t *Term) kill(q *killRequest, sids []string) int {
	if len(sids) == 0 {
		return t.Fail(option.Wrong("sbx kill wants a session", "sbx ls lists them"))
	}
	whole := q.signal == "" && q.pid == 0
	if !whole && q.signal == "" {
		q.signal = "TERM"
	}
	return t.Each("sessions", "sid", sids, func(sid string) error {
		if whole {
			err := t.EndSession(sid)
			if err == nil && !q.json {
				t.sayLeft(sid)
			}
			return err
		}
		return t.with(sid, func(c *client.Session) error { return endedMeanwhile(c.Kill(q.pid, q.signal)) })
	})
}

// with connects to a session.
func (t *Term) with(sid string, do func(*client.Session) error) error {
	c, err := t.dial(sid)
	if err != nil {
		return err
	}
	defer c.Close()
	return do(c)
}

func (t *Term) dial(sid string) (*client.Session, error) {
	return connect(t, sid, t.sessions().Dial)
}

// killPatience is how long the end of a session is waited for.
const killPatience = 5 * time.Second

// EndSession ends a session and waits until it is gone. A broker that does not answer is killed, which ends its
// sandbox.
func (t *Term) EndSession(sid string) error {
	c, err := t.dial(sid)
	if err != nil {
		var r *planner.Refusal
		if errors.As(err, &r) {
			return err
		}
		return t.endBroker(sid, err)
	}
	defer c.Close()
	ctx, cancel := context.WithTimeout(context.Background(), killPatience)
	defer cancel()
	err = endedMeanwhile(c.Kill(0, ""))
	var refused *client.Error
	if errors.As(err, &refused) {
		return err
	}
	if err == nil {
		err = c.Follow(ctx, func(*client.Message) error { return nil })
	}
	if err != nil {
		return t.endBroker(sid, err)
	}
	return t.awaitEnd(sid)
}

// endPatience is how long a session's record may take once its sandbox is gone. What it left is looked through for at
// most 20 seconds.
const endPatience = 25 * time.Second

// awaitEnd waits until no broker holds a session's lock any more.
func (t *Term) awaitEnd(sid string) error {
	for begin := time.Now(); t.sessionAlive(sid); time.Sleep(time.Millisecond) {
		if time.Since(begin) > endPatience {
			return &planner.Refusal{What: "session " + sid + " has been told to end and has not ended within " +
				endPatience.String(), Hint: "sbx ls shows whether it has since; sbx kill " + sid + " tells it again"}
		}
	}
	return nil
}

// endedMeanwhile takes the session's end for the answer to what ends it.
func endedMeanwhile(err error) error {
	if control.HasEnded(err) {
		return nil
	}
	return err
}

// endBroker kills the process that listens on a session's socket, because of why, and waits until it and its sandbox
// are gone.
func (t *Term) endBroker(sid string, why error) error {
	root, err := t.ControlRoot()
	if err != nil {
		return why
	}
	pid, err := control.Listener(root, sid)
	if err != nil || pid == os.Getpid() {
		return why
	}
	left, err := control.End(pid, host.Children(pid), killPatience)
	switch {
	case err != nil:
		return why
	case len(left) > 0:
		return &planner.Refusal{What: fmt.Sprintf("session %s does not answer and was killed; %s after that there are still "+
			"its processes %v", sid, killPatience, left), Hint: "a process that hangs in the kernel ends when what it waits " +
			"for answers"}
	}
	return t.awaitEnd(sid)
}

// ControlRoot is the folder in which each running session has its socket.
func (t *Term) ControlRoot() (string, error) {
	root, err := control.Root(host.Lookup(t.Env, "XDG_RUNTIME_DIR"), host.Lookup(t.Env, "XDG_STATE_HOME"),
		host.Read(t.Env).Home)
	if err != nil {
		return "", &planner.Refusal{What: err.Error()}
	}
	return root, nil
}

// sessions is where this user's sessions are found. Nothing is made or looked at that an exec has no time for.
func (t *Term) sessions() client.Sessions {
	home := host.Lookup(t.Env, "HOME")
	if !strings.HasPrefix(home, "/") {
		home = host.Read(t.Env).Home
	}
	return client.At(host.Lookup(t.Env, "XDG_RUNTIME_DIR"), host.Lookup(t.Env, "XDG_STATE_HOME"), home)
}

// connect connects to a session by dial. One that is alive but has no socket yet is about to have it.
func connect[C any](t *Term, sid string, dial func(string) (C, error)) (C, error) {
	for begin := time.Now(); ; time.Sleep(10 * time.Millisecond) {
		c, err := dial(sid)
		if err == nil || !client.IsDead(err) {
			return c, err
		}
		if time.Since(begin) > 2*time.Second || !t.sessionAlive(sid) {
			return c, &planner.Refusal{What: "no session " + sid + " is running",
				Hint: "sbx ls lists sessions; sbx run --detach --name " + sid + " starts one"}
		}
	}
}

package cli

import (
	"context"
	"errors"
	"io"
	"os"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"sbx/broker/client"
	"sbx/broker/internal/control"
	"sbx/broker/internal/host"
	"sbx/broker/internal/option"
	"sbx/broker/internal/planner"
)

func killCommand() command {
	return command{
		Command: option.Command{Name: "kill", Args: "[--signal NAME] SID...", Full: "[--signal NAME] [--pid PID] SID...",
			Help: "end sessions, or send a signal to a program",
			Text: "Ends sessions: everything in them is gone when it returns. With --signal, or --pid, it sends a signal (TERM)\n" +
				"to a session's first program, or to the one that is PID inside, and to its process group.",
			Words: []option.Word{{From: option.Session}}},
		begin: func(t *term, _ []string) ([]option.Option, func([]string) int) {
			var q killRequest
			return q.options(), func(sids []string) int { return t.kill(&q, sids) }
		},
	}
}

// killRequest is what sbx kill is asked for.
type killRequest struct {
	signal string
	pid    int
}

func (q *killRequest) options() []option.Option {
	return []option.Option{
		{Name: "signal", Arg: "NAME", Help: "send this signal", Value: option.Func(func(v string) error {
			q.signal = v
			_, err := signalOf(v)
			return err
		}).Suggest("TERM", "INT", "HUP", "KILL", "STOP", "CONT", "QUIT", "USR1", "USR2")},
		{Name: "pid", Arg: "PID", Help: "to the program that is PID inside", Value: option.Func(func(v string) error {
			n, err := strconv.ParseUint(v, 10, 22)
			if err != nil || n < 2 {
				return wrong(quote(v)+" is not a pid of the sandbox's programs", "sbx ps SID shows them")
			}
			q.pid = int(n)
			return nil
		})},
	}
}

// kill ends sessions or signals programs in them.
func (t *term) kill(q *killRequest, sids []string) int {
	if len(sids) == 0 {
		return t.fail(wrong("sbx kill wants a session", "sbx ls lists them"))
	}
	whole := q.signal == "" && q.pid == 0
	if !whole && q.signal == "" {
		q.signal = "TERM"
	}
	return t.each(sids, func(sid string) error {
		if whole {
			return t.endSession(sid)
		}
		return t.with(sid, func(c *client.Session) error { return endedMeanwhile(c.Kill(q.pid, q.signal)) })
	})
}

func freezeCommand() command {
	return stateCommand("freeze", "stop every process of sessions", "Stops every process of the sessions until sbx thaw: with the session's "+
		"control group if it has one, with SIGSTOP\notherwise. sbx ls says which.", (*client.Session).Freeze)
}

func thawCommand() command {
	return stateCommand("thaw", "let frozen sessions go on", "Lets the processes of frozen sessions go on.", (*client.Session).Thaw)
}

func stateCommand(name, help, text string, do func(*client.Session) error) command {
	return command{
		Command: option.Command{Name: name, Args: "SID...", Help: help, Text: text, Words: []option.Word{{From: option.Session}}},
		begin: simple(func(t *term, sids []string) int {
			if len(sids) == 0 {
				return t.fail(wrong("sbx "+name+" wants a session", "sbx ls lists them"))
			}
			return t.each(sids, func(sid string) error { return t.with(sid, do) })
		}),
	}
}

// each does something to each session; one that fails does not keep the others from it.
func (t *term) each(sids []string, do func(string) error) int {
	status := 0
	for _, sid := range sids {
		if err := do(sid); err != nil {
			status = t.fail(err)
		}
	}
	return status
}

// with connects to a session.
func (t *term) with(sid string, do func(*client.Session) error) error {
	c, err := t.dial(sid)
	if err != nil {
		return err
	}
	defer c.Close()
	return do(c)
}

func (t *term) dial(sid string) (*client.Session, error) {
	return connect(t, sid, t.sessions().Dial)
}

// killPatience is how long the end of a session is waited for.
const killPatience = 5 * time.Second

// endSession ends a session and waits until it is gone. A broker that does not answer is killed, which ends its
// sandbox.
func (t *term) endSession(sid string) error {
	c, err := t.dial(sid)
	if err != nil {
		var r *planner.Refusal
		if errors.As(err, &r) || !t.killBroker(sid) {
			return err
		}
		return nil
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
	if err != nil && !t.killBroker(sid) {
		return err
	}
	for t.sessionAlive(sid) && ctx.Err() == nil {
		time.Sleep(time.Millisecond)
	}
	return nil
}

// endedMeanwhile takes the session's end for the answer to what ends it.
func endedMeanwhile(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, unix.ECONNRESET) || errors.Is(err, unix.EPIPE) {
		return nil
	}
	return err
}

// killBroker kills the process that listens on a session's socket.
func (t *term) killBroker(sid string) bool {
	root, err := controlRoot(t.env, host.Read(t.env).Home)
	if err != nil {
		return false
	}
	pid, err := control.Listener(root, sid)
	if err != nil || pid == os.Getpid() {
		return false
	}
	return unix.Kill(pid, unix.SIGKILL) == nil
}

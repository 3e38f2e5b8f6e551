package cli

import (
	"context"
	"errors"
	"io"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"sbx/broker/client"
	"sbx/broker/internal/control"
	"sbx/broker/internal/host"
	"sbx/broker/internal/planner"
)

const killHelp = `usage: sbx kill [--signal NAME] [--pid PID] SID...

Ends sessions: everything in them is gone when it returns. With --signal, or --pid, it sends a signal (TERM)
to a session's first program, or to the one that is PID inside, and to its process group.
`

// cmdKill ends sessions or signals programs in them.
func cmdKill(t *term, args []string) int {
	signal, pid, whole := "", 0, true
	sids, help, err := words(args, map[string]func(string) error{
		"--signal": func(v string) error { signal, whole = v, false; _, err := signalOf(v); return err },
		"--pid": func(v string) error {
			n, err := strconv.ParseUint(v, 10, 22)
			if err != nil || n < 2 {
				return &usageError{quote(v) + " is not a pid of the sandbox's programs", "sbx ps SID shows them"}
			}
			pid, whole = int(n), false
			return nil
		},
	})
	switch {
	case err != nil:
		return t.fail(err)
	case help:
		t.print(killHelp)
		return 0
	case len(sids) == 0:
		return t.fail(&usageError{"sbx kill wants a session", "sbx ls lists them"})
	}
	if !whole && signal == "" {
		signal = "TERM"
	}
	return t.each(sids, func(sid string) error {
		if whole {
			return t.endSession(sid)
		}
		return t.with(sid, func(c *client.Session) error { return endedMeanwhile(c.Kill(pid, signal)) })
	})
}

func cmdFreeze(t *term, args []string) int {
	return t.stateCommand(args, "freeze", "Stops every process of the sessions until sbx thaw: with the session's control group if it has one, with SIGSTOP\notherwise. sbx ls says which.", (*client.Session).Freeze)
}

func cmdThaw(t *term, args []string) int {
	return t.stateCommand(args, "thaw", "Lets the processes of frozen sessions go on.", (*client.Session).Thaw)
}

func (t *term) stateCommand(args []string, name, help string, do func(*client.Session) error) int {
	sids, wantsHelp, err := words(args, nil)
	switch {
	case err != nil:
		return t.fail(err)
	case wantsHelp:
		t.print("usage: sbx " + name + " SID...\n\n" + help + "\n")
		return 0
	case len(sids) == 0:
		return t.fail(&usageError{"sbx " + name + " wants a session", "sbx ls lists them"})
	}
	return t.each(sids, func(sid string) error { return t.with(sid, do) })
}

// words separates options with values from words.
func words(args []string, options map[string]func(string) error) (rest []string, help bool, err error) {
	for len(args) > 0 {
		a, value, has := strings.Cut(args[0], "=")
		args = args[1:]
		if a == "--help" || a == "-h" {
			return nil, true, nil
		}
		if !strings.HasPrefix(a, "-") {
			rest = append(rest, a)
			continue
		}
		set := options[a]
		if set == nil {
			return nil, false, &usageError{"unknown option " + quote(a), ""}
		}
		if !has {
			if len(args) == 0 {
				return nil, false, &usageError{a + " wants a value", ""}
			}
			value, args = args[0], args[1:]
		}
		if err := set(value); err != nil {
			return nil, false, err
		}
	}
	return rest, false, nil
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

// endSession ends a session and waits until it is gone. A broker that does not answer is killed, which ends its sandbox.
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

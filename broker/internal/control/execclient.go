package control

import (
	"encoding/json"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"sbx/shared/plan"
)

// ExecEvent is what a client hears of a program that it started: Started and then End, or End alone if it was over at once.
type ExecEvent struct {
	Tag     int
	Started bool
	PID     int
	Pty     *os.File // master of the terminal, the callee's
	End     *ExecEnd
}

// DialExec connects as Dial does, but does not wait for the broker to say who it is before the first command.
func DialExec(root, sid string) (*Client, error) {
	dir, err := openSession(root, sid)
	if err != nil {
		return nil, fmt.Errorf("connecting to session %s: %w", sid, err)
	}
	defer unix.Close(dir)
	f, err := connect(dir)
	if err != nil {
		return nil, fmt.Errorf("connecting to session %s: %w", sid, err)
	}
	c := &Client{f: f}
	c.fds.f, c.in.r = f, &c.fds
	return c, nil
}

// Exec asks for another program; its end, and before that its start, come from NextExec with the tag of e. The files may be
// closed when it has returned.
func (c *Client) Exec(e Exec) error {
	o := message("cmd.exec").list("argv", e.Argv).list("env", e.Env).opt("cwd", string(e.Cwd))
	var fds []int
	if e.TTY {
		o.flag("tty", true).num("rows", int64(e.Rows)).num("cols", int64(e.Cols))
	} else if e.Files != [3]*os.File{} {
		for _, f := range e.Files {
			fds = append(fds, int(f.Fd()))
		}
		o.num("fds", 3)
	}
	if e.Tag != 0 {
		o.num("tag", int64(e.Tag))
	}
	line := o.line()
	if len(line) >= MaxLine {
		return fmt.Errorf("arguments and environment are %d bytes, at most %d fit", len(line), MaxLine)
	}
	if err := c.f.SetWriteDeadline(time.Now().Add(patience)); err != nil {
		return err
	}
	if err := sendRights(c.f, line, fds...); err != nil {
		return fmt.Errorf("sending to the broker: %w", err)
	}
	return nil
}

// Signal sends a signal such as TERM to a program and its process group, without waiting for the answer. It may be called
// while NextExec waits.
func (c *Client) Signal(pid int, signal string) error {
	_, err := c.f.Write(killLine(pid, signal))
	return err
}

// execMessage is the part of a Message that NextExec needs: reading all of it takes longer than starting a program.
type execMessage struct {
	Type    string       `json:"type"`
	Re      string       `json:"re"`
	PID     int          `json:"pid"`
	Tag     int          `json:"tag"`
	Status  int          `json:"status"`
	Signal  string       `json:"signal"`
	Error   plan.Bytes   `json:"error"`
	Usec    int64        `json:"usec"`
	Blocked []plan.Bytes `json:"blocked"`
	Code    string       `json:"code"`
	Message plan.Bytes   `json:"message"`
}

// NextExec waits for the next start or end of a program that this client asked for.
func (c *Client) NextExec() (ExecEvent, error) {
	for {
		line, err := c.in.read()
		if err != nil {
			return ExecEvent{}, err
		}
		var m execMessage
		if err := json.Unmarshal(line, &m); err != nil {
			return ExecEvent{}, fmt.Errorf("reading the broker's line: %w", err)
		}
		switch {
		case m.Type == "error":
			return ExecEvent{}, &Error{m.Code, string(m.Message)}
		case m.Type == "ok" && m.Re == "cmd.exec":
			ev := ExecEvent{Started: true, PID: m.PID, Tag: m.Tag}
			if len(c.fds.fds) > 0 {
				_ = unix.SetNonblock(c.fds.fds[0], true)
				ev.Pty = os.NewFile(uintptr(c.fds.fds[0]), "terminal")
				c.fds.fds = c.fds.fds[1:]
			}
			return ev, nil
		case m.Type == "event.exec":
			end := &ExecEnd{PID: m.PID, Tag: m.Tag, Status: m.Status, Signal: m.Signal, Error: string(m.Error), Duration: time.Duration(m.Usec) * time.Microsecond}
			for _, b := range m.Blocked {
				end.Blocked = append(end.Blocked, string(b))
			}
			return ExecEvent{PID: m.PID, Tag: m.Tag, End: end}, nil
		}
	}
}

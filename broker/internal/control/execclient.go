package control

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"sbx.example/sbx/broker/internal/prompt"
	"sbx.example/sbx/broker/plan"
)

// ExecEvent is what a client hears of a program that it started: Started and then End, or End alone if it was over at
// once. Besides it hears of the session's questions and of lines for people.
type ExecEvent struct {
	Tag     int
	Started bool
	PID     int
	Pty     *os.File // master of the terminal, the callee's
	End     *ExecEnd

	Question *prompt.Question
	Notice   string
}

// ExecClient is a connection for starting programs and nothing else. It does not wait for the broker to say who it is
// before the first command, and waits in system calls of its own: a program's start takes half a millisecond, and the
// Go runtime's poller a good part of that.
type ExecClient struct {
	in  lineReader
	fds rightsReader
}

// DialExec connects to a session below root, see FindRoot.
func DialExec(root, sid string) (*ExecClient, error) {
	dir, err := openSession(root, sid)
	if err != nil {
		return nil, fmt.Errorf("connecting to session %s: %w", sid, err)
	}
	defer unix.Close(dir)
	fd, err := connectRaw(dir, folderOf(root, sid))
	if err == nil {
		if err = unix.SetNonblock(fd, false); err != nil {
			unix.Close(fd)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("connecting to session %s: %w", sid, err)
	}
	c := &ExecClient{fds: rightsReader{raw: fd}}
	c.in.r = &c.fds
	return c, nil
}

// ResumeExec takes a connection over on which got has come already.
func ResumeExec(fd int, got []byte) *ExecClient {
	c := &ExecClient{fds: rightsReader{raw: fd}}
	c.in = lineReader{r: &c.fds, buf: got}
	return c
}

// Close ends the connection: the programs that it has started hear SIGHUP. Nobody may be waiting in NextExec.
func (c *ExecClient) Close() {
	c.fds.close()
	unix.Close(c.fds.raw)
}

func (c *ExecClient) send(line []byte, fds ...int) error {
	var rights []byte
	if len(fds) > 0 {
		rights = unix.UnixRights(fds...)
	}
	for len(line) > 0 {
		n, err := unix.SendmsgN(c.fds.raw, line, rights, nil, unix.MSG_NOSIGNAL)
		if err != nil && err != unix.EINTR {
			return fmt.Errorf("sending to the session: %w", err)
		}
		if n > 0 {
			line, rights = line[n:], nil
		}
	}
	return nil
}

// Exec asks for another program; its end, and before that its start, come from NextExec with the tag of e. The files
// may be closed when it has returned.
func (c *ExecClient) Exec(e Exec) error {
	if e.File != nil {
		return c.file(e)
	}
	o := message("cmd.exec").list("env", e.Env).opt("cwd", string(e.Cwd))
	var fds []int
	if e.TTY {
		o.flag("tty", true).num("rows", int64(e.Rows)).num("cols", int64(e.Cols))
	} else if e.Files != [3]*os.File{} {
		for _, f := range e.Files {
			fds = append(fds, int(f.Fd()))
		}
		o.num("fds", 3)
	}
	if e.NoLinks {
		o.flag("nolinks", true)
	}
	if e.Tag != 0 {
		o.num("tag", int64(e.Tag))
	}
	whole := len(o.b)
	line := o.list("argv", e.Argv).line()
	if len(line) >= MaxLine && len(e.Argv) > 1 {
		more, size, err := writeMore(e.Argv[1:])
		if err != nil {
			return fmt.Errorf("passing %d arguments: %w", len(e.Argv), err)
		}
		defer more.Close()
		o.b, fds = o.b[:whole], append(fds, int(more.Fd()))
		line = o.list("argv", e.Argv[:1]).num("more", int64(size)).line()
	}
	if len(line) >= MaxLine {
		return fmt.Errorf("the environment to be added is %d bytes, at most %d fit", len(line), MaxLine)
	}
	return c.send(line, fds...)
}

// file asks for an operation on files.
func (c *ExecClient) file(e Exec) error {
	var fds []int
	for _, f := range e.Files {
		fds = append(fds, int(f.Fd()))
	}
	line := fileLine(e.File, e.Tag)
	if len(line) >= MaxLine {
		return errors.New("the paths do not fit a line")
	}
	return c.send(line, fds...)
}

// Signal sends a signal such as TERM to a program and its process group, without waiting for the answer. It may be
// called while NextExec waits.
func (c *ExecClient) Signal(pid int, signal string) error { return c.send(killLine(pid, signal)) }

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
	Limits  []plan.Bytes `json:"limits"`
	Code    string       `json:"code"`
	Message plan.Bytes   `json:"message"`
	Text    plan.Bytes   `json:"text"`
}

// NextExec waits for the next event.
func (c *ExecClient) NextExec() (ExecEvent, error) {
	for {
		line, err := c.in.read()
		if err != nil {
			return ExecEvent{}, err
		}
		var m execMessage
		if err := json.Unmarshal(line, &m); err != nil {
			return ExecEvent{}, fmt.Errorf("reading from the session: %w", err)
		}
		switch {
		case m.Type == "error":
			return ExecEvent{}, &Error{m.Code, string(m.Message)}
		case m.Type == "event.fs_request", m.Type == "event.net_request":
			var whole Message
			if err := json.Unmarshal(line, &whole); err != nil {
				return ExecEvent{}, fmt.Errorf("reading the broker's line: %w", err)
			}
			q := whole.Question()
			return ExecEvent{Question: &q}, nil
		case m.Type == "event.notice":
			return ExecEvent{Notice: string(m.Text)}, nil
		case m.Type == "ok" && (m.Re == "cmd.exec" || m.Re == "cmd.file"):
			ev := ExecEvent{Started: true, PID: m.PID, Tag: m.Tag}
			if len(c.fds.fds) > 0 {
				_ = unix.SetNonblock(c.fds.fds[0], true)
				ev.Pty = os.NewFile(uintptr(c.fds.fds[0]), "terminal")
				c.fds.fds = c.fds.fds[1:]
			}
			return ev, nil
		case m.Type == "event.exec":
			end := &ExecEnd{PID: m.PID, Tag: m.Tag, Status: m.Status, Signal: m.Signal, Error: string(m.Error),
				Duration: time.Duration(m.Usec) * time.Microsecond}
			for _, b := range m.Blocked {
				end.Blocked = append(end.Blocked, string(b))
			}
			for _, l := range m.Limits {
				end.Limits = append(end.Limits, string(l))
			}
			return ExecEvent{PID: m.PID, Tag: m.Tag, End: end}, nil
		}
	}
}

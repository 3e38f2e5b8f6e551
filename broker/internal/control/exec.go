package control

import (
	"os"
	"time"

	"sbx.example/sbx/broker/internal/files"
	"sbx.example/sbx/broker/plan"
)

// Exec is a program that a client wants started in the session.
type Exec struct {
	Argv, Env  []plan.Bytes // Env is added to what the session's programs have
	Cwd        plan.Bytes   // empty: the session's
	NoLinks    bool         // no link on the way to Cwd is followed
	Files      [3]*os.File  // nil: the null device
	TTY        bool         // a terminal of the sandbox's instead of Files
	Rows, Cols int
	Tag        int // the client's name for it, at will

	// File is an operation on files, which is carried out instead of a program. Of Files the first is its content and the
	// second its answer.
	File *files.Request
}

// ExecEvents is how an Exec goes on. Started comes first, with the master of its terminal if it has one, which becomes
// the callee's; a program without a terminal that is over at once may have none. Ended comes last, once, unless the
// handler returned an error.
type ExecEvents struct {
	Started func(pid int, pty *os.File)
	Ended   func(ExecEnd)
}

// ExecEnd is how a program ended.
type ExecEnd struct {
	Tag      int
	PID      int    // 0: it was not started
	Status   int    // as a shell reports it
	Signal   string // without SIG, if one ended it
	Error    string // why it was never executed, or that the session ended
	Duration time.Duration
	Blocked  []string // what was refused to it
	Limits   []string // which limits it may have come to
}

// maxExecs is how many programs of one client run at once.
const maxExecs = 1024

func (c *conn) exec(cmd *Command) *Error {
	if c.s.h.Exec == nil {
		return notHere(cmd)
	}
	e := Exec{Argv: cmd.Argv, Env: cmd.Env, Cwd: cmd.Cwd, NoLinks: cmd.NoLinks, TTY: cmd.TTY,
		Rows: cmd.Rows & 0xffff, Cols: cmd.Cols & 0xffff}
	if cmd.Type == "cmd.file" {
		e.File = &cmd.File
	}
	defer func() {
		for _, f := range e.Files {
			if f != nil {
				f.Close()
			}
		}
	}()
	if err := c.handed(cmd, &e); err != nil {
		return err
	}
	c.mu.Lock()
	n := len(c.execs)
	c.mu.Unlock()
	if n >= maxExecs {
		return errf(CodeBusy, "%d programs of this client run: wait for some", maxExecs)
	}
	err := c.s.h.Exec(e, ExecEvents{
		Started: func(pid int, pty *os.File) {
			c.mu.Lock()
			ending := c.ending
			if c.execs == nil {
				c.execs = map[int]bool{}
			}
			c.execs[pid] = true
			c.mu.Unlock()
			if ending {
				go c.hangUp() // it waits for whoever calls this
			}
			c.push(job{line: message("ok").str("re", cmd.Type).num("pid", int64(pid)).num("tag", int64(cmd.Tag)).line(),
				file: pty})
		},
		Ended: func(end ExecEnd) {
			c.mu.Lock()
			delete(c.execs, end.PID)
			c.mu.Unlock()
			end.Tag = cmd.Tag
			c.send(endLine(end))
		},
	})
	if err != nil {
		return codeOf(err)
	}
	return nil
}

// handed takes what came with the line: the program's files, which are the caller's to close, and more arguments.
func (c *conn) handed(cmd *Command, e *Exec) *Error {
	switch {
	case cmd.Fds != 0 && (cmd.Fds != 3 || cmd.TTY), cmd.Fds == 0 && e.File != nil:
		return errf(CodeField, "fds: want 3, or 0 and tty")
	case cmd.Fds == 3 && !c.fds.take(e.Files[:]):
		return errf(CodeField, "fds: three descriptors must come with the line")
	}
	if cmd.More > 0 {
		var file [1]*os.File
		if !c.fds.take(file[:]) {
			return errf(CodeField, "more: its descriptor must come with the line")
		}
		defer file[0].Close()
		words, err := readMore(file[0], cmd.More)
		if err != nil {
			return errf(CodeField, "more: %v", err)
		}
		e.Argv = append(e.Argv, words...)
	}
	if len(c.fds.fds) > 0 && cmd.Fds == 0 {
		return errf(CodeField, "%v", errRights)
	}
	return nil
}

// hangUp tells the programs of a client that has gone.
func (c *conn) hangUp() {
	c.mu.Lock()
	pids := make([]int, 0, len(c.execs))
	for pid := range c.execs {
		pids = append(pids, pid)
	}
	c.ending = true
	c.signal()
	c.mu.Unlock()
	for _, pid := range pids {
		if c.s.h.HangUp != nil {
			c.s.h.HangUp(pid)
		}
	}
}

func (j *job) drop() {
	if j.file != nil {
		j.file.Close()
		j.file = nil
	}
}

func (c *conn) writeFile(j job) error {
	defer j.drop()
	if err := c.f.SetWriteDeadline(time.Now().Add(c.s.opt.writeTimeout)); err != nil {
		return err
	}
	return sendRights(c.f, j.line, int(j.file.Fd()))
}

func endLine(e ExecEnd) []byte {
	o := message("event.exec").num("pid", int64(e.PID)).num("tag", int64(e.Tag)).num("status",
		int64(e.Status)).opt("signal", e.Signal).num("usec", e.Duration.Microseconds())
	if e.Error != "" {
		o.str("error", clip(e.Error, 1000))
	}
	var blocked []plan.Bytes
	for i, b := range e.Blocked {
		if i == 64 {
			break
		}
		blocked = append(blocked, plan.Bytes(clip(b, 200)))
	}
	o.list("blocked", blocked)
	if len(e.Limits) > 0 { // rare; without it a client that looks for no more than the status needs no runtime
		o.list("limits", bytesOf(e.Limits))
	}
	return o.line()
}

func bytesOf(list []string) []plan.Bytes {
	out := make([]plan.Bytes, len(list))
	for i, s := range list {
		out[i] = plan.Bytes(clip(s, 500))
	}
	return out
}

package control

import (
	"errors"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"sbx.example/sbx/broker/internal/prompt"
)

// maxBacklog is how many bytes may wait for a client that does not read. Lines are shared between the
// clients, so this bounds all of them together as well.
const maxBacklog = 256 << 10

// conn is one client. One goroutine reads and obeys, one writes.
type conn struct {
	s     *Server
	f     *os.File
	blind atomic.Bool // it has sent a command that is not about questions
	heard atomic.Bool // it has sent a line

	number uint64 // of all clients, in their order

	// of the goroutine that reads
	in    lineReader
	fds   rightsReader
	first bool // nothing was read yet
	over  bool // nothing is read any more

	mu      sync.Mutex
	out     []job
	backlog int
	writing bool   // jobs that are not in out any more are being written
	ending  bool   // nothing is added any more; close when out is empty
	held    []byte // lines that wait for the end of an answer
	corked  bool
	closing bool // ending, as soon as the answer that is carried out has been told
	wake    chan struct{}
	execs   map[int]bool // what was started for this client and runs
	// questions that were open when it came, and whose event is still to come: it must not be told twice
	listed map[string]bool
}

// job is a line, or the open questions as they are when their turn comes.
type job struct {
	line []byte
	id   string   // of the question that the line is the event of
	file *os.File // goes along with the line
	open bool
	tell bool // say ok and how many
}

func newConn(s *Server, fd int) *conn {
	c := &conn{s: s, f: os.NewFile(uintptr(fd), "client"), first: true, wake: make(chan struct{}, 1),
		listed: map[string]bool{}}
	c.push(job{line: s.hello()})
	c.push(job{open: true})
	return c
}

func (c *conn) send(line []byte) { c.push(job{line: line}) }

func (c *conn) push(j job) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ending || c.wasListed(j.id) {
		j.drop()
		return
	}
	if c.corked && j.file == nil && !j.open && len(c.held) < MaxLine {
		c.held = append(c.held, j.line...)
		return
	}
	c.writeHeld()
	c.put(j)
}

// put writes a job, or queues it behind others. c.mu is held.
func (c *conn) put(j job) {
	if len(c.out) == 0 && !c.writing && !j.open && c.direct(&j) {
		return
	}
	c.out = append(c.out, j)
	c.backlog += len(j.line) + 64
	if c.backlog > maxBacklog {
		for _, o := range c.out {
			o.drop()
		}
		c.out, c.ending = []job{{line: errorLine(errf(CodeSlow, "lines are not read"))}}, true
	}
	c.signal()
}

// direct writes what can be written without waiting, and says whether that was all: waking another goroutine
// for it takes longer. c.mu is held.
func (c *conn) direct(j *job) bool {
	rc, err := c.f.SyscallConn()
	if err != nil {
		return false
	}
	var rights []byte
	if j.file != nil {
		rights = unix.UnixRights(int(j.file.Fd()))
	}
	n := 0
	if err := rc.Control(func(fd uintptr) {
		n, err = unix.SendmsgN(int(fd), j.line, rights, nil, unix.MSG_NOSIGNAL|unix.MSG_DONTWAIT)
	}); err != nil || n <= 0 {
		return false
	}
	j.drop()
	j.line = j.line[n:]
	return len(j.line) == 0
}

// cork keeps lines back until uncork, so that a client that has answered is woken once for the event and the reply.
func (c *conn) cork() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.corked = true
}

func (c *conn) uncork() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.corked = false
	if c.writeHeld(); c.closing {
		c.ending = true
		c.signal()
	}
}

// writeHeld writes what was held, in its order. c.mu is held.
func (c *conn) writeHeld() {
	if len(c.held) == 0 {
		return
	}
	line := c.held
	c.held = nil
	c.put(job{line: line})
}

func (c *conn) signal() {
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

// finish ends the connection once everything is written.
func (c *conn) finish() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closing = true; c.corked {
		return
	}
	c.writeHeld()
	c.ending = true
	c.signal()
}

// displace ends the connection; all that it is still told is why.
func (c *conn) displace(e *Error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, j := range c.out {
		j.drop()
	}
	c.out, c.ending = []job{{line: errorLine(e)}}, true
	c.signal()
}

func (c *conn) fail(e *Error) {
	c.send(errorLine(e))
	c.finish()
}

// write sends what is queued until the connection ends, and closes it.
func (c *conn) write() {
	defer c.s.forget(c)
	defer c.f.Close()
	for {
		c.mu.Lock()
		if len(c.out) == 0 && c.ending {
			c.mu.Unlock()
			return
		}
		jobs := c.out
		c.out, c.writing = nil, len(c.out) > 0
		c.mu.Unlock()
		for i, j := range jobs {
			if c.run(j) != nil {
				for _, j := range jobs[i:] {
					j.drop()
				}
				c.finish()
				return
			}
			c.mu.Lock()
			c.backlog -= len(j.line) + 64
			c.mu.Unlock()
		}
		if len(jobs) == 0 {
			<-c.wake
		}
	}
}

// wasListed says whether the client has read the question already, in the list of those that were open when it came.
// c.mu is held.
func (c *conn) wasListed(id string) bool {
	told := c.listed[id]
	delete(c.listed, id)
	return told
}

func (c *conn) run(j job) error {
	if j.file != nil {
		return c.writeFile(j)
	}
	if j.id != "" {
		c.mu.Lock()
		told := c.wasListed(j.id)
		c.mu.Unlock()
		if told {
			return nil
		}
	}
	if !j.open {
		return c.writeLine(j.line)
	}
	var list []prompt.Question
	if c.s.h.Pending != nil {
		list = c.s.h.Pending()
	}
	if !j.tell {
		c.mu.Lock()
		for _, q := range list {
			c.listed[q.ID] = true
		}
		c.mu.Unlock()
	}
	for _, q := range list {
		if err := c.writeLine(requestLine(q)); err != nil {
			return err
		}
	}
	if j.tell {
		return c.writeLine(message("ok").str("re", "cmd.pending").num("count", int64(len(list))).line())
	}
	return nil
}

func (c *conn) writeLine(line []byte) error {
	if err := c.f.SetWriteDeadline(time.Now().Add(c.s.opt.writeTimeout)); err != nil {
		return err
	}
	_, err := c.f.Write(line)
	return err
}

// obey is the table of commands: shapes lists them, this carries them out.
func (c *conn) obey(cmd *Command) *Error {
	h := &c.s.h
	switch cmd.Type {
	case "hello", "cmd.pending", "cmd.approve", "cmd.deny", "cmd.revoke", "cmd.reveal", "cmd.undo":
	default:
		c.blind.Store(true)
	}
	switch cmd.Type {
	case "hello":
		return c.hello(cmd)
	case "cmd.approve", "cmd.deny":
		defer c.uncork()
		return c.answer(cmd)
	case "cmd.pending":
		c.push(job{open: true, tell: true})
		return nil
	case "cmd.revoke":
		if h.Revoke == nil {
			return notHere(cmd)
		}
		n, err := h.Revoke(cmd.Kind, string(cmd.Name))
		if err != nil {
			return codeOf(err)
		}
		c.send(message("ok").str("re", cmd.Type).num("count", int64(n)).line())
		return nil
	case "cmd.reveal":
		if h.Reveal == nil {
			return notHere(cmd)
		}
		a, err := cmd.Answer(time.Now())
		if err != nil {
			return err
		}
		return c.reply(cmd, h.Reveal(string(cmd.Name), a))
	case "cmd.undo":
		if h.Undo == nil {
			return notHere(cmd)
		}
		return c.reply(cmd, h.Undo(cmd.ID))
	case "cmd.kill":
		if h.Kill == nil {
			return notHere(cmd)
		}
		return c.reply(cmd, h.Kill(cmd.PID, cmd.Signal))
	case "cmd.freeze":
		if h.Freeze == nil {
			return notHere(cmd)
		}
		return c.reply(cmd, h.Freeze())
	case "cmd.thaw":
		if h.Thaw == nil {
			return notHere(cmd)
		}
		return c.reply(cmd, h.Thaw())
	case "cmd.exec", "cmd.file":
		return c.exec(cmd)
	case "cmd.stats":
		if h.Stats == nil {
			return notHere(cmd)
		}
		m, err := h.Stats()
		if err != nil {
			return codeOf(err)
		}
		c.send(metricsLine("stats", m))
		return nil
	}
	return errf(CodeType, "unknown type %s", cmd.Type)
}

func notHere(cmd *Command) *Error {
	return errf(CodeNotHere, "this session does not offer %s", cmd.Type)
}

func (c *conn) hello(cmd *Command) *Error {
	switch {
	case !c.first:
		return errf(CodeType, "hello comes first or not at all")
	case cmd.Version != Version:
		return errf(CodeVersion, "version %d is not spoken here: this is version %d", cmd.Version, Version)
	case cmd.SID != "" && cmd.SID != c.s.info.SID:
		return errf(CodeSession, "this is session %s", c.s.info.SID)
	}
	return nil
}

func (c *conn) reply(cmd *Command, err error) *Error {
	if err != nil {
		return codeOf(err)
	}
	c.send(message("ok").str("re", cmd.Type).opt("id", cmd.ID).line())
	return nil
}

// codeOf keeps the errors apart that a client has to.
func codeOf(err error) *Error {
	var e *Error
	switch {
	case errors.As(err, &e):
		return e
	case errors.Is(err, prompt.ErrUnknown):
		return errf(CodeUnknown, "%v", err)
	case errors.Is(err, prompt.ErrAnswered):
		return errf(CodeAnswered, "%v", err)
	}
	return errf(CodeRefused, "%v", err)
}

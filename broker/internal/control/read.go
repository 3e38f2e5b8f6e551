package control

import (
	"errors"
	"time"

	"golang.org/x/sys/unix"

	"sbx/broker/internal/decide"
)

// serve obeys the client's lines one after the other. The first that is wrong is the last.
func (c *conn) serve() {
	defer c.finish()
	defer c.hangUp()
	for c.obeyAll() && c.await() {
	}
	c.reading.Lock()
	defer c.reading.Unlock()
	c.over = true
	c.fds.close()
}

// await reads when there is something.
func (c *conn) await() bool {
	rc, err := c.f.SyscallConn()
	if err != nil {
		return false
	}
	var rerr error
	err = rc.Read(func(fd uintptr) bool {
		c.reading.Lock()
		defer c.reading.Unlock()
		rerr = c.receive(int(fd))
		return rerr != unix.EAGAIN // somebody who looked was faster
	})
	if errors.Is(rerr, errRights) {
		c.fail(errf(CodeField, "%v", rerr))
	}
	return err == nil && rerr == nil
}

// receive never waits. c.reading is held.
func (c *conn) receive(fd int) error {
	return c.in.more(func(b []byte) (int, error) { return c.fds.receive(fd, b, unix.MSG_DONTWAIT) })
}

// obeyAll obeys the lines that were read, and says whether there may be others.
func (c *conn) obeyAll() bool {
	c.reading.Lock()
	defer c.reading.Unlock()
	for !c.over {
		line, err := c.in.cut()
		switch {
		case err != nil:
			c.end(errf(CodeSyntax, "%v", err))
		case line == nil:
			return true
		default:
			c.heard.Store(true)
			cmd, e := ParseCommand(line)
			if e == nil {
				e = c.obey(&cmd)
			}
			c.obeyed(e)
		}
	}
	return false
}

// obeyed is called after each line. c.reading is held.
func (c *conn) obeyed(e *Error) {
	if e != nil {
		c.end(e)
		return
	}
	c.first = false
	c.mu.Lock()
	defer c.mu.Unlock()
	c.over = c.ending
}

func (c *conn) end(e *Error) {
	c.fail(e)
	c.over = true
}

// answer settles a question, and holds back what the client is told of it.
func (c *conn) answer(cmd *Command) *Error {
	a, e := cmd.Answer(time.Now())
	if e != nil {
		return e
	}
	if c.s.h.Answer == nil {
		return notHere(cmd)
	}
	c.hold()
	if e = c.reply(cmd, c.s.h.Answer(cmd.ID, a)); e == nil {
		c.s.answered.Store(c)
	}
	return e
}

// Look takes answers of the client that gave the last one, if there are any, and gives other programs the processor if not. It is for
// whoever waits for an answer of a program: its own thread would sleep and be woken again in more time than that needs.
func (s *Server) Look(after *decide.After) {
	if c := s.answered.Load(); c == nil || !c.look(after) {
		_, _, _ = unix.RawSyscall(unix.SYS_SCHED_YIELD, 0, 0, 0)
	}
}

// look obeys one line if it is an answer. Others, and the end of the connection, are the reader's.
func (c *conn) look(after *decide.After) bool {
	if !c.reading.TryLock() {
		return false
	}
	defer c.reading.Unlock()
	if c.over {
		return false
	}
	line, err := c.in.cut()
	if line == nil && err == nil {
		rc, cerr := c.f.SyscallConn()
		if cerr != nil {
			return false
		}
		if cerr = rc.Control(func(fd uintptr) { err = c.receive(int(fd)) }); cerr != nil || err != nil {
			if errors.Is(err, errRights) {
				c.end(errf(CodeField, "%v", err))
			}
			return false
		}
		line, err = c.in.cut()
	}
	switch {
	case err != nil:
		c.end(errf(CodeSyntax, "%v", err))
		return false
	case line == nil:
		return false
	}
	cmd, e := ParseCommand(line)
	if e != nil || cmd.Type != "cmd.approve" && cmd.Type != "cmd.deny" {
		c.in.back(line)
		go c.obeyAll()
		return false
	}
	if e = c.answer(&cmd); e != nil {
		c.let()
	} else {
		c.lag()
		after.Add(c.let)
	}
	c.obeyed(e)
	return true
}

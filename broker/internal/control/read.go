package control

import (
	"errors"
	"time"

	"golang.org/x/sys/unix"
)

// serve obeys the client's lines one after the other. The first that is wrong is the last.
func (c *conn) serve() {
	defer c.finish()
	defer c.hangUp()
	for c.obeyAll() && c.await() {
	}
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
		rerr = c.in.more(func(b []byte) (int, error) { return c.fds.receive(int(fd), b, unix.MSG_DONTWAIT) })
		return rerr != unix.EAGAIN
	})
	if errors.Is(rerr, errRights) {
		c.fail(errf(CodeField, "%v", rerr))
	}
	return err == nil && rerr == nil
}

// obeyAll obeys the lines that were read, and says whether there may be others.
func (c *conn) obeyAll() bool {
	for !c.over {
		line, err := c.in.cut()
		switch {
		case err != nil:
			c.end(errf(CodeSyntax, "%v", err))
		case line == nil:
			return true
		default:
			c.heard.Store(true)
			cmd, e := parseCommand(line)
			if e == nil {
				e = c.obey(&cmd)
			}
			c.obeyed(e)
		}
	}
	return false
}

// obeyed is called after each line.
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
	c.cork()
	return c.reply(cmd, c.s.h.Answer(cmd.ID, a))
}

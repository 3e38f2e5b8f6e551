package stage

import (
	"slices"
	"time"

	"golang.org/x/sys/unix"
)

// Also is something that the thread that waits for process 1 looks after in between, so that a program of a
// few milliseconds costs no further thread: each takes as long to make, to wake and to end as a dozen
// requests take to answer.
type Also struct {
	Fd    int
	Ready func() bool // the descriptor can be read; false: it is somebody else's from now on
	Leave func()      // the program takes its time: it is somebody else's from now on
	// Building: somebody else's as soon as the sandbox stands, because what the program does there may have to wait.
	Building bool
}

// alsoFor is how long that goes on, and alsoTimes how often a descriptor may be ready.
const (
	alsoFor   = 20 * time.Millisecond
	alsoTimes = 100
)

// looked is the list of what is looked after.
type looked struct {
	list  []Also
	times int
	since time.Time // when the last was added, or process 1 was given its plan

	chores  []func()
	settled func()
}

// spreadAfter is how long a program has to itself the processors that process 1 had; it has started by then.
const spreadAfter = 20 * time.Millisecond

// settledAfter is how long a program has run whose broker may do what would have been in its way.
const settledAfter = 400 * time.Millisecond

// quietFor is how long nothing has to be asked of the waiting thread before it does a chore.
const quietFor = 150 * time.Microsecond

// Chore has the thread that waits for process 1 do something, a little at a time, when nobody wants anything of it. What it has not got round to
// when the program has ended is not done. Called like LookAfter.
func (c *Child) Chore(f ...func()) { c.also.chores = append(c.also.chores, f...) }

// doChores does all that is left, for a thread that does not wait here.
func (c *Child) doChores() {
	for _, f := range c.also.chores {
		f()
	}
	c.also.chores = nil
}

// poll waits until one of list is ready, for at most left. It does chores meanwhile, and may return early, with 0.
func (c *Child) poll(list []unix.PollFd, left time.Duration, quiet time.Duration) (int, error) {
	if len(c.also.chores) == 0 {
		return unix.Poll(list, int(left/time.Millisecond)+1)
	}
	wait := unix.NsecToTimespec(int64(quiet))
	n, err := unix.Ppoll(list, &wait, nil)
	if err == nil && n == 0 {
		f := c.also.chores[0]
		c.also.chores = c.also.chores[1:]
		f()
		return c.poll(list, left, 0)
	}
	return n, err
}

// LookAfter adds a. It is called by the thread that waits, from a hook or between events.
func (c *Child) LookAfter(a Also) {
	c.also.list = append(c.also.list, a)
	c.also.since = time.Now()
}

// lookAround returns when process 1 has something to say, or when there is nothing else to look after.
func (c *Child) lookAround() {
	var fds [8]unix.PollFd
	for len(c.also.list) > 0 {
		left := alsoFor - time.Since(c.also.since)
		if left <= 0 || c.also.times > alsoTimes || len(c.also.list) >= len(fds) {
			c.Leave()
			break
		}
		list := append(fds[:0], unix.PollFd{Fd: int32(c.sock), Events: unix.POLLIN})
		for _, a := range c.also.list {
			list = append(list, unix.PollFd{Fd: int32(a.Fd), Events: unix.POLLIN})
		}
		n, err := c.poll(list, left, quietFor)
		if err != nil || n == 0 {
			continue
		}
		for i := len(list) - 1; i > 0; i-- {
			if list[i].Revents == 0 {
				continue
			}
			c.also.times++
			if !c.also.list[i-1].Ready() {
				c.also.list = append(c.also.list[:i-1], c.also.list[i:]...)
			}
		}
		if list[0].Revents != 0 {
			return
		}
	}
	c.settle()
}

// settle waits for process 1, but not longer than until the program has settled.
func (c *Child) settle() {
	for c.also.settled != nil {
		left := settledAfter - time.Since(c.also.since)
		if left <= 0 {
			c.also.settled()
			c.also.settled = nil
			return
		}
		fds := [1]unix.PollFd{{Fd: int32(c.sock), Events: unix.POLLIN}}
		if n, err := c.poll(fds[:], left, quietFor); err == nil && n > 0 {
			return
		}
	}
}

// Leave gives everything to others, also what the program was too short for, so that whoever stays closes it.
func (c *Child) Leave() {
	for _, a := range c.also.list {
		a.Leave()
	}
	c.also.list = nil
}

// leaveBuilt gives others what was looked after while the sandbox was built.
func (c *Child) leaveBuilt() {
	c.also.list = slices.DeleteFunc(c.also.list, func(a Also) bool {
		if a.Building {
			a.Leave()
		}
		return a.Building
	})
}

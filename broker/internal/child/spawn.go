//go:build linux

package child

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"sbx.example/sbx/broker/internal/steps"
	"sbx.example/sbx/broker/plan"
	"sbx.example/sbx/shared/stage"
	"sbx.example/sbx/shared/tape"
)

// Spawn is a program to be started in a sandbox that runs already, as confined as its first one.
type Spawn struct {
	// Argv is the program and its arguments. A first word without a slash is looked for inside, in the
	// directories of Path.
	Argv []string
	Env  []string
	Path []string // absolute directories
	Dir  string
	// NoLinks has no link on the way to Dir followed: what lies behind one is somebody else's to say.
	NoLinks bool
	Umask   uint32
	// Files become 0, 1 and 2. With TTY they are not used: the program gets a pseudo-terminal of the
	// sandbox's.
	Files [3]int
	// Third has the third file executed, and not what Argv names.
	Third      bool
	TTY        bool
	Rows, Cols uint16 // size of the terminal

	// These are called by whoever calls Next, in this order, and must not wait. Started is called when the
	// program has run for a moment: of one that is over at once there is only Exited. Pty is called for a TTY
	// only, before or after Started; Exited is called once for every Spawn that had no error.
	Started func(pid int)
	Pty     func(master *os.File)
	Stopped func(syscall.WaitStatus)
	Exited  func(Exit)
}

// Exit is how a spawned program ended: by its status, or it was never executed because of Fault or Err.
type Exit struct {
	PID    int // as seen inside; 0: not even a process was started
	Status syscall.WaitStatus
	Fault  *steps.Fault
	Err    error
}

// spawned is the broker's side of one start.
type spawned struct {
	*Spawn
	id    int64
	steps []tape.StepAt
	fault tape.Stop // copied when the slot is used again
	pid   int       // 0: not heard of yet
	slot  *slot     // nil: the fault above counts
	given *os.File  // the master of its terminal, where this process has made that; told of at the first event
}

// spawns is the table of what was started later.
type spawns struct {
	mu     sync.Mutex
	last   int64
	ended  bool
	byID   map[int64]*spawned
	kills  map[int64]chan error
	owners [maxSlots]*spawned
}

var (
	errTooLarge = errors.New("the kernel takes at most 6 MiB of arguments and environment, and sbx 150 directories in " +
		"PATH")
	errBusy   = errors.New("too many programs are being started at this moment")
	errDirect = errors.New("the sandbox was built by another program, which shares no memory with sbx: nothing can be " +
		"started in it later")
	errNoInit = errors.New("the program runs with --as-pid-1, so there is nobody inside who could start another")
)

// Spawn starts another program. It returns before the program has started.
func (c *Child) Spawn(s Spawn) error {
	if c.start == nil || c.asPID1 {
		return errNoInit
	}
	if c.parent != nil {
		return errDirect
	}
	if len(s.Argv) == 0 || s.Argv[0] == "" {
		return errors.New("no program is named")
	}
	x := &c.spawns
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.ended {
		return errGone
	}
	x.last++
	sp := &spawned{Spawn: &s, id: x.last}
	i, err := c.place(sp)
	if err != nil {
		return err
	}
	if x.byID == nil {
		x.byID = map[int64]*spawned{}
	}
	x.byID[sp.id] = sp
	m := stage.Message{Kind: stage.CmdSpawn, Value: int64(i)}
	files := s.Files
	switch {
	case s.TTY && c.plan.InPlace != nil:
		slave, err := sp.givenTerminal()
		if err != nil {
			sp.forget(x, i)
			return err
		}
		defer slave.Close()
		files = [3]int{int(slave.Fd()), int(slave.Fd()), int(slave.Fd())}
	case s.TTY: // three are wanted; they are never seen inside
		files = [3]int{c.Pidfd, c.Pidfd, c.Pidfd}
	}
	// Process 1 has not read what others asked for yet: it is waited for without the lock, which those need whom it waits
	// for.
	err = unix.Sendmsg(c.sock, m.Encode(), unix.UnixRights(files[:]...), nil, unix.MSG_NOSIGNAL|unix.MSG_DONTWAIT)
	for end := time.Now().Add(spawnPatience); err == unix.EAGAIN && time.Now().Before(end) && !x.ended; {
		x.mu.Unlock()
		time.Sleep(time.Millisecond)
		x.mu.Lock()
		err = unix.Sendmsg(c.sock, m.Encode(), unix.UnixRights(files[:]...), nil, unix.MSG_NOSIGNAL|unix.MSG_DONTWAIT)
	}
	if err == nil {
		return nil
	}
	if x.ended { // whoever ended it has told sp already
		return nil
	}
	sp.forget(x, i)
	if err == unix.EAGAIN {
		return errBusy
	}
	return fmt.Errorf("asking the sandbox: %w", err)
}

// forget takes a start back that process 1 has not heard of; x.mu is held.
func (sp *spawned) forget(x *spawns, slot int) {
	delete(x.byID, sp.id)
	x.owners[slot] = nil
	sp.slot.release()
	if sp.given != nil {
		sp.given.Close()
	}
}

// spawnPatience is how long a start waits for those before it.
const spawnPatience = 30 * time.Second

// place gives sp a slot with its tape: the last one if it fits no other. c.spawns.mu is held.
func (c *Child) place(sp *spawned) (int, error) {
	for _, x := range [...]struct{ from, to int }{{0, wideSlot}, {wideSlot, maxSlots}} {
		i, err := c.grab(x.from, x.to)
		if err != nil {
			return 0, err
		}
		sp.slot = &c.block.slots[i]
		t := c.block.take(i, sp.id)
		if compileSpawn(t, c.plan, sp.Spawn, sp.id); !t.Full() {
			sp.slot.load(t)
			sp.steps, c.spawns.owners[i] = t.Steps, sp
			return i, nil
		}
		sp.slot.release()
	}
	return 0, errTooLarge
}

// grab finds one of the slots before to that nobody uses any more; x.mu is held.
func (c *Child) grab(from, to int) (int, error) {
	x := &c.spawns
	end := time.Now().Add(spawnPatience)
	for wait := 20 * time.Microsecond; ; wait = min(2*wait, 20*time.Millisecond) {
		for i := from; i < to; i++ {
			s := &c.block.slots[i]
			if !s.free() {
				continue
			}
			if o := x.owners[i]; o != nil {
				o.fault, o.slot, x.owners[i] = s.job.Stop, nil, nil
			}
			return i, nil
		}
		if time.Now().After(end) {
			return 0, errBusy
		}
		x.mu.Unlock()
		time.Sleep(wait)
		x.mu.Lock()
		if x.ended {
			return 0, errGone
		}
	}
}

// compileSpawn makes the tape of one start.
func compileSpawn(t *tape.Tape, p *plan.Plan, s *Spawn, id int64) {
	innerDomain(t, p)
	t.At("starting", "session")
	t.Call(unix.SYS_SETSID)
	if s.TTY && p.InPlace != nil { // the broker has made it, see givenTerminal
		t.At("taking terminal", "")
		t.Call(unix.SYS_IOCTL, 0, unix.TIOCSCTTY, 0).From(0, tape.RegA)
	} else if s.TTY {
		t.At("opening terminal", "/dev/pts/ptmx")
		t.Call(unix.SYS_OPENAT, tape.AtCwd, t.Str("/dev/pts/ptmx"), unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC,
			0).To(tape.RegTTY)
		sendFd(t, stage.Message{Kind: stage.EvPty, Value: id}, tape.RegTTY)
		t.Call(unix.SYS_IOCTL, 0, unix.TIOCSPTLCK, t.Buf(8)).From(0, tape.RegTTY)
		t.Call(unix.SYS_IOCTL, 0, unix.TIOCGPTPEER, unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC).From(0,
			tape.RegTTY).To(tape.RegA)
		t.Call(unix.SYS_IOCTL, 0, unix.TIOCSWINSZ, tape.Ptr(t, &unix.Winsize{Row: s.Rows, Col: s.Cols})).From(0, tape.RegA)
		t.Call(unix.SYS_IOCTL, 0, unix.TIOCSCTTY, 0).From(0, tape.RegA)
	}
	for i := range s.Files {
		r := uint8(tape.RegA + i)
		if s.TTY {
			r = tape.RegA
		}
		t.At("passing descriptor", fmt.Sprint(i))
		t.Call(unix.SYS_DUP3, 0, uintptr(i), 0).From(0, r)
	}
	t.At("closing descriptors", "")
	t.Call(unix.SYS_CLOSE_RANGE, 3, uintptr(^uint32(0)), 0)
	t.At("starting", "umask")
	t.Call(unix.SYS_UMASK, uintptr(s.Umask))
	t.At("entering directory", s.Dir)
	enter(t, s)
	t.At("starting", "signal mask")
	mask := t.Buf(8)
	t.Call(unix.SYS_RT_SIGPROCMASK, unix.SIG_SETMASK, mask, 0, 8)
	argv, env := steps.Vector(t, s.Argv), steps.Vector(t, s.Env)
	t.At(steps.ExecStep, s.Argv[0])
	if s.Third {
		t.Call(unix.SYS_EXECVEAT, 2, t.Str(""), argv, env, unix.AT_EMPTY_PATH)
		return
	}
	if strings.Contains(s.Argv[0], "/") {
		t.Call(unix.SYS_EXECVE, t.Str(s.Argv[0]), argv, env)
		return
	}
	// As execvp(3): the first that can be executed. If none could, the first that exists says why not.
	var names []uintptr
	for _, d := range s.Path {
		name := t.Str(strings.TrimSuffix(d, "/") + "/" + s.Argv[0])
		names = append(names, name)
		t.Call(unix.SYS_EXECVE, name, argv, env).May(tape.AnyErrno)
	}
	for _, name := range names {
		t.Call(unix.SYS_FACCESSAT, tape.AtCwd, name, unix.F_OK).May(tape.AnyErrno).ElseSkip(1)
		t.Call(unix.SYS_EXECVE, name, argv, env)
	}
	t.Call(unix.SYS_EXECVE, t.Str("/"+s.Argv[0]+"/."), argv, env) // fails: ENOENT, as a rule
}

// enter goes to the directory of a start.
func enter(t *tape.Tape, s *Spawn) {
	if !s.NoLinks {
		t.Call(unix.SYS_CHDIR, t.Str(s.Dir))
		return
	}
	t.Call(unix.SYS_CHDIR, t.Str("/"))
	for name := range strings.FieldsFuncSeq(s.Dir, func(r rune) bool { return r == '/' }) {
		t.Call(unix.SYS_OPENAT, tape.AtCwd, t.Str(name), unix.O_PATH|unix.O_NOFOLLOW|unix.O_DIRECTORY|unix.O_CLOEXEC,
			0).To(tape.RegA)
		t.Call(unix.SYS_FCHDIR, 0).From(0, tape.RegA)
	}
}

// handle deals with an event of something spawned; it says whether it was one.
func (c *Child) handle(m stage.Message, fds []int) bool {
	if m.Kind == stage.EvKilled {
		c.killed(m)
		return true
	}
	id := m.Extra
	if m.Kind == stage.EvStarted || m.Kind == stage.EvPty {
		id = m.Value
	}
	x := &c.spawns
	x.mu.Lock()
	sp := x.byID[id]
	if sp == nil {
		x.mu.Unlock()
		closeAll(fds)
		return m.Kind == stage.EvStarted || m.Kind == stage.EvPty
	}
	first := sp.pid == 0
	if m.Kind != stage.EvPty {
		sp.pid = int(m.PID)
	}
	ended := m.Kind == stage.EvExited || m.Kind == stage.EvStarted && m.Extra != 0
	var fault *steps.Fault
	if ended {
		delete(x.byID, id)
		fault = sp.ending(x)
	}
	x.mu.Unlock()
	if sp.given != nil && sp.Pty != nil {
		sp.Pty(sp.given)
		sp.given = nil
	}
	switch {
	case m.Kind == stage.EvPty && (len(fds) != 1 || sp.Pty == nil):
		closeAll(fds)
	case m.Kind == stage.EvPty:
		sp.Pty(os.NewFile(uintptr(fds[0]), "pty"))
	case m.Kind == stage.EvExited:
		sp.Exited(Exit{PID: sp.pid, Status: syscall.WaitStatus(m.Value), Fault: fault})
	case ended:
		sp.Exited(Exit{Err: fmt.Errorf("starting a process: %w", syscall.Errno(m.Extra))})
	default:
		if first {
			call(sp.Started, sp.pid)
		}
		if m.Kind == stage.EvStopped {
			call(sp.Stopped, syscall.WaitStatus(m.Value))
		}
	}
	return true
}

func closeAll(fds []int) {
	for _, fd := range fds {
		unix.Close(fd)
	}
}

// ending takes the start out of its slot and returns its fault; x.mu is held.
func (sp *spawned) ending(x *spawns) *steps.Fault {
	f := sp.fault
	if sp.slot != nil {
		f = sp.slot.job.Stop
		for i := range x.owners {
			if x.owners[i] == sp {
				x.owners[i] = nil
			}
		}
		sp.slot = nil
	}
	if f.Errno == 0 {
		return nil
	}
	t := tape.Tape{Steps: sp.steps}
	return steps.FaultAt(&t, f)
}

func call[T any](f func(T), v T) {
	if f != nil {
		f(v)
	}
}

// abandon tells everybody whose program has not ended that it is gone with the sandbox.
func (c *Child) abandon() {
	x := &c.spawns
	x.mu.Lock()
	x.ended = true
	var left []*spawned
	for _, sp := range x.byID {
		left = append(left, sp)
	}
	x.byID = nil
	for n, ch := range x.kills {
		ch <- errGone
		delete(x.kills, n)
	}
	x.mu.Unlock()
	for _, sp := range left {
		sp.Exited(Exit{PID: sp.pid, Status: syscall.WaitStatus(unix.SIGKILL), Err: errGone})
	}
}

// signalPatience is how long process 1 may take to send a signal. A client of the session's socket waits for longer.
const signalPatience = 4 * time.Second

// SignalNow sends sig as Signal does and waits until that has happened; it returns what kill(2) said, or
// os.ErrDeadlineExceeded if process 1 does not answer. Somebody else must be calling Next.
func (c *Child) SignalNow(pid int, sig syscall.Signal) error {
	x := &c.spawns
	ch := make(chan error, 1)
	x.mu.Lock()
	if x.ended {
		x.mu.Unlock()
		return errGone
	}
	if x.kills == nil {
		x.kills = map[int64]chan error{}
	}
	x.last++
	n := x.last
	x.kills[n] = ch
	x.mu.Unlock()
	m := stage.Message{Kind: stage.CmdKill, PID: int64(pid), Value: int64(sig), Extra: n}
	if err := unix.Sendto(c.sock, m.Encode(), unix.MSG_NOSIGNAL, nil); err != nil {
		x.forget(n)
		return fmt.Errorf("asking the sandbox: %w", err)
	}
	select {
	case err := <-ch:
		return err
	case <-time.After(signalPatience):
		x.forget(n)
		return fmt.Errorf("waiting for the sandbox to send the signal: %w", os.ErrDeadlineExceeded)
	}
}

// forget drops who waits for the signal n.
func (x *spawns) forget(n int64) {
	x.mu.Lock()
	defer x.mu.Unlock()
	delete(x.kills, n)
}

func (c *Child) killed(m stage.Message) {
	x := &c.spawns
	x.mu.Lock()
	defer x.mu.Unlock()
	if ch := x.kills[m.PID]; ch != nil {
		delete(x.kills, m.PID)
		if m.Value != 0 {
			ch <- syscall.Errno(m.Value)
			return
		}
		ch <- nil
	}
}

// IsGone says whether err means that the sandbox has ended.
func IsGone(err error) bool { return errors.Is(err, errGone) }

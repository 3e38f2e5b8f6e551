package stage

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Spawn is a program to be started in a sandbox that runs already, as confined as its first one.
type Spawn struct {
	// Argv is the program and its arguments. A first word without a slash is looked for inside, in the
	// directories of Path.
	Argv  []string
	Env   []string
	Path  []string // absolute directories
	Dir   string
	Umask uint32
	// Files become 0, 1 and 2. With TTY they are not used: the program gets a pseudo-terminal of the
	// sandbox's.
	Files      [3]int
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
	Fault  *Fault
	Err    error
}

// spawned is the broker's side of one start.
type spawned struct {
	*Spawn
	id    int64
	steps []stepAt
	fault fault // copied when the slot is used again
	pid   int   // 0: not heard of yet
	slot  *slot // nil: the fault above counts
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
	errTooLarge = errors.New("arguments and environment do not fit: at most 250 KiB in all, 150 directories in PATH")
	errBusy     = errors.New("too many programs are being started at this moment")
	errDirect   = errors.New("the sandbox was built by sbx-helper, which shares no memory with sbx: nothing can be started in it later")
	errNoInit   = errors.New("the program is process 1 itself, so there is nobody inside who could start another")
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
	i, err := c.grab()
	if err != nil {
		return err
	}
	x.last++
	sp := &spawned{Spawn: &s, id: x.last, slot: &c.block.slots[i]}
	t := sp.slot.take(sp.id)
	compileSpawn(t, &s, sp.id)
	if t.full() {
		sp.slot.release()
		return errTooLarge
	}
	sp.slot.load(t)
	sp.steps, x.owners[i] = t.steps, sp
	if x.byID == nil {
		x.byID = map[int64]*spawned{}
	}
	x.byID[sp.id] = sp
	m := message{kind: cmdSpawn, value: int64(i)}
	files := s.Files
	if s.TTY { // three are wanted; they are never seen inside
		files = [3]int{c.Pidfd, c.Pidfd, c.Pidfd}
	}
	// Process 1 has not read what others asked for yet: it is waited for without the lock, which those need whom it waits for.
	err = unix.Sendmsg(c.sock, m.encode(), unix.UnixRights(files[:]...), nil, unix.MSG_NOSIGNAL|unix.MSG_DONTWAIT)
	for end := time.Now().Add(spawnPatience); err == unix.EAGAIN && time.Now().Before(end) && !x.ended; {
		x.mu.Unlock()
		time.Sleep(time.Millisecond)
		x.mu.Lock()
		err = unix.Sendmsg(c.sock, m.encode(), unix.UnixRights(files[:]...), nil, unix.MSG_NOSIGNAL|unix.MSG_DONTWAIT)
	}
	if err == nil {
		return nil
	}
	if x.ended { // whoever ended it has told sp already
		return nil
	}
	delete(x.byID, sp.id)
	x.owners[i] = nil
	sp.slot.release()
	if err == unix.EAGAIN {
		return errBusy
	}
	return fmt.Errorf("asking process 1: %w", err)
}

// spawnPatience is how long a start waits for those before it.
const spawnPatience = 30 * time.Second

// grab finds a slot that nobody uses any more; x.mu is held.
func (c *Child) grab() (int, error) {
	x := &c.spawns
	end := time.Now().Add(spawnPatience)
	for wait := 20 * time.Microsecond; ; wait = min(2*wait, 20*time.Millisecond) {
		for i := range x.owners {
			s := &c.block.slots[i]
			if !s.free() {
				continue
			}
			if o := x.owners[i]; o != nil {
				o.fault, o.slot, x.owners[i] = s.job.fault, nil, nil
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
func compileSpawn(t *tape, s *Spawn, id int64) {
	t.at("starting", "session")
	t.call(unix.SYS_SETSID)
	if s.TTY {
		t.at("opening terminal", "/dev/pts/ptmx")
		t.call(unix.SYS_OPENAT, atCwd, t.str("/dev/pts/ptmx"), unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC, 0).to(regTTY)
		sendFd(t, message{kind: evPty, value: id}, regTTY)
		t.call(unix.SYS_IOCTL, 0, unix.TIOCSPTLCK, t.buf(8)).from(0, regTTY)
		t.call(unix.SYS_IOCTL, 0, unix.TIOCGPTPEER, unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC).from(0, regTTY).to(regA)
		t.call(unix.SYS_IOCTL, 0, unix.TIOCSWINSZ, ptr(t, &unix.Winsize{Row: s.Rows, Col: s.Cols})).from(0, regA)
		t.call(unix.SYS_IOCTL, 0, unix.TIOCSCTTY, 0).from(0, regA)
	}
	for i := range s.Files {
		r := uint8(regA + i)
		if s.TTY {
			r = regA
		}
		t.at("passing descriptor", fmt.Sprint(i))
		t.call(unix.SYS_DUP3, 0, uintptr(i), 0).from(0, r)
	}
	t.at("closing descriptors", "")
	t.call(unix.SYS_CLOSE_RANGE, 3, uintptr(^uint32(0)), 0)
	t.at("starting", "umask")
	t.call(unix.SYS_UMASK, uintptr(s.Umask))
	t.at("entering directory", s.Dir)
	t.call(unix.SYS_CHDIR, t.str(s.Dir))
	t.at("starting", "signal mask")
	mask := t.buf(8)
	t.call(unix.SYS_RT_SIGPROCMASK, unix.SIG_SETMASK, mask, 0, 8)
	argv, env := vector(t, s.Argv), vector(t, s.Env)
	t.at(execStep, s.Argv[0])
	if strings.Contains(s.Argv[0], "/") {
		t.call(unix.SYS_EXECVE, t.str(s.Argv[0]), argv, env)
		return
	}
	// As execvp(3): the first that can be executed. If none could, the first that exists says why not.
	var names []uintptr
	for _, d := range s.Path {
		name := t.str(strings.TrimSuffix(d, "/") + "/" + s.Argv[0])
		names = append(names, name)
		t.call(unix.SYS_EXECVE, name, argv, env).may(anyErrno)
	}
	for _, name := range names {
		t.call(unix.SYS_FACCESSAT, atCwd, name, unix.F_OK).may(anyErrno).elseSkip(1)
		t.call(unix.SYS_EXECVE, name, argv, env)
	}
	t.call(unix.SYS_EXECVE, t.str("/"+s.Argv[0]+"/."), argv, env) // fails: ENOENT, as a rule
}

// handle deals with an event of something spawned; it says whether it was one.
func (c *Child) handle(m message, fds []int) bool {
	if m.kind == evKilled {
		c.killed(m)
		return true
	}
	id := m.extra
	if m.kind == evStarted || m.kind == evPty {
		id = m.value
	}
	x := &c.spawns
	x.mu.Lock()
	sp := x.byID[id]
	if sp == nil {
		x.mu.Unlock()
		closeAll(fds)
		return m.kind == evStarted || m.kind == evPty
	}
	first := sp.pid == 0
	if m.kind != evPty {
		sp.pid = int(m.pid)
	}
	ended := m.kind == evExited || m.kind == evStarted && m.extra != 0
	var fault *Fault
	if ended {
		delete(x.byID, id)
		fault = sp.ending(x)
	}
	x.mu.Unlock()
	switch {
	case m.kind == evPty && (len(fds) != 1 || sp.Pty == nil):
		closeAll(fds)
	case m.kind == evPty:
		sp.Pty(os.NewFile(uintptr(fds[0]), "pty"))
	case m.kind == evExited:
		sp.Exited(Exit{PID: sp.pid, Status: syscall.WaitStatus(m.value), Fault: fault})
	case ended:
		sp.Exited(Exit{Err: fmt.Errorf("starting a process: %w", syscall.Errno(m.extra))})
	default:
		if first {
			call(sp.Started, sp.pid)
		}
		if m.kind == evStopped {
			call(sp.Stopped, syscall.WaitStatus(m.value))
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
func (sp *spawned) ending(x *spawns) *Fault {
	f := sp.fault
	if sp.slot != nil {
		f = sp.slot.job.fault
		for i := range x.owners {
			if x.owners[i] == sp {
				x.owners[i] = nil
			}
		}
		sp.slot = nil
	}
	if f.errno == 0 {
		return nil
	}
	t := tape{steps: sp.steps}
	return faultAt(&t, "start", f)
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

// SignalNow sends sig as Signal does and waits until that has happened; it returns what kill(2) said. Somebody
// else must be calling Next.
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
	m := message{kind: cmdKill, pid: int64(pid), value: int64(sig), extra: n}
	if err := unix.Sendto(c.sock, m.encode(), unix.MSG_NOSIGNAL, nil); err != nil {
		x.mu.Lock()
		delete(x.kills, n)
		x.mu.Unlock()
		return fmt.Errorf("asking process 1: %w", err)
	}
	return <-ch
}

func (c *Child) killed(m message) {
	x := &c.spawns
	x.mu.Lock()
	defer x.mu.Unlock()
	if ch := x.kills[m.pid]; ch != nil {
		delete(x.kills, m.pid)
		if m.value != 0 {
			ch <- syscall.Errno(m.value)
			return
		}
		ch <- nil
	}
}

// IsGone says whether err means that the sandbox has ended.
func IsGone(err error) bool { return errors.Is(err, errGone) }

//go:build linux

package child

import (
	"bytes"
	"fmt"
	"os"
	"slices"
	"strconv"

	"golang.org/x/sys/unix"

	"sbx.example/sbx/broker/plan"
	"sbx.example/sbx/shared/stage"
	"sbx.example/sbx/shared/tape"
)

// What is here carries out a plan in namespaces that bubblewrap has made. Process 1 is sbx itself (Within). It clones
// one process, which looks whether everything is as it was planned, and then is what process 1 is elsewhere.

// The descriptors of process 1 there. Those of the program come over the socket.
const (
	WithinSock  = 3 + iota
	WithinTail       // see Tail
	WithinSelf       // sbx, to be executed
	WithinArgs       // bubblewrap's own, which it closes
	withinStdio = 30 // to 32: above those that process 1 keeps elsewhere
)

// WithinName is what process 1 is called there.
const WithinName = "sbx-within"

// WithinArgv has bubblewrap execute it.
func WithinArgv() []string { return []string{fmt.Sprintf("/proc/self/fd/%d", WithinSelf), WithinName} }

// IsWithin says whether a process with these arguments is it.
func IsWithin(args []string) bool { return slices.Equal(args, WithinArgv()) }

// within makes the tape of what comes before finish.
func (c *builder) within() error {
	t := c.T
	var null unix.Stat_t
	if err := unix.Stat("/dev/null", &null); err != nil {
		return fmt.Errorf("looking at /dev/null: %w", err)
	}
	c.Detach(WithinSock, stage.Stdio{withinStdio, withinStdio + 1, withinStdio + 2})
	for _, fd := range [...]uintptr{WithinSock, WithinTail, WithinSelf, withinStdio, withinStdio + 1, withinStdio + 2} {
		t.Call(unix.SYS_CLOSE, fd).May(uint16(unix.EBADF)) // where there is no close_range
	}
	t.At("becoming a reaper", "") // of all that lose their parent
	t.Call(unix.SYS_PRCTL, unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
	for i := range c.p.Mounts {
		c.lookAtMount(&c.p.Mounts[i], &null)
	}
	c.dropAll()
	return nil
}

// closeSingly lets close_range(2), of 5.9, be missing: what is left open then is closed by name, or by the program's
// exec.
func closeSingly(t *tape.Tape) {
	for i := range t.Ops {
		if o := &t.Ops[i]; o.Nr == unix.SYS_CLOSE_RANGE {
			o.OkErrno = uint16(unix.ENOSYS)
		}
	}
}

// lookAtMount fails unless what bubblewrap has mounted is what was planned, and cannot be written where it must not be.
// It follows links, of the source and of the place, and somebody may have made one meanwhile.
func (c *builder) lookAtMount(m *plan.Mount, null *unix.Stat_t) {
	t := c.T
	readOnly := m.Access == plan.ReadOnly
	dev, ino := uint64(0), uint64(0) // of what must be there
	switch {
	case m.Kind == plan.Bind && !m.Device, m.Kind == plan.Judged:
		dev, ino = m.Dev, m.Ino
	case m.Kind == plan.Mask:
		dev, ino = null.Dev, null.Ino
	case (m.Kind == plan.Protect || m.Kind == plan.Tmpfs) && readOnly:
	default:
		return
	}
	t.At("looking at what is mounted", m.Target)
	first := len(t.Ops)
	c.Open(m.Target, tape.RegA)
	if ino != 0 {
		stage.SameObject(t, tape.RegA, dev, ino)
	}
	t.Call(unix.SYS_CLOSE).From(0, tape.RegA)
	if readOnly {
		t.Call(unix.SYS_FACCESSAT, tape.AtCwd, t.Str(m.Target), unix.W_OK).To(tape.RegB).May(tape.AnyErrno).ElseSkip(1)
		t.Want(tape.RegB, 1, uintptr(unix.ESTALE)) // it is 0, where it could be written
	}
	if m.Optional && !t.Full() {
		t.Ops[first].May(uint16(unix.ENOENT)).ElseSkip(uint8(len(t.Ops) - first - 1))
	}
}

// pidOf is the process of a pidfd as it is called here (proc_pid_fdinfo(5)); 0: it is gone.
func pidOf(pidfd int) int {
	b, _ := os.ReadFile(fmt.Sprintf("/proc/self/fdinfo/%d", pidfd))
	_, rest, _ := bytes.Cut(b, []byte("\nPid:\t"))
	line, _, _ := bytes.Cut(rest, []byte("\n"))
	n, err := strconv.Atoi(string(line))
	if err != nil || n < 1 {
		return 0
	}
	return n
}

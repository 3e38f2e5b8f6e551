//go:build linux

package bwrap

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"sbx.example/sbx/broker/internal/child"
	"sbx.example/sbx/broker/plan"
	"sbx.example/sbx/shared/stage"
)

// Name is what a program is called that is to be bubblewrap.
const Name = "bwrap"

// Is says whether a process that was started by that name is to be bubblewrap.
func Is(arg0 string) bool { return path.Base(arg0) == Name }

// Beside is what sbx does beside what the words say.
type Beside struct {
	Logs  string                      // folder of the audit logs, "" for none
	Under func() (Under, Asks, error) // see there; each may be nil
	Files uint64                      // the soft limit of open descriptors before Go raised it; 0: as it is
	// Left is told where the caller may have left what it makes for its sandbox, as soon as that cannot hold anything up.
	// It may be nil.
	Left func(dirs []string)
}

// Main is bubblewrap: args are the words behind its name. It returns the exit status.
func Main(name string, args, env []string, std [3]*os.File, beside Beside) int {
	if len(args) == 1 && args[0] == "--version" {
		fmt.Fprintf(std[1], "bubblewrap %s\n", Version)
		// An agent's first call, which waits for this: what another one has left stays from now on. Where there are no
		// records nobody has a list yet.
		if cwd, err := os.Getwd(); err == nil && keepsRecords(beside.Logs) {
			beside.left([]string{cwd})
		}
		return 0
	}
	if err := child.MakePoller(); err != nil {
		return report(err, 0, name, std, nil)
	}
	r, err := parse(args, env, ownRights(), load)
	if err == nil {
		for _, w := range r.warnings {
			fmt.Fprintf(std[2], "%sbwrap: %s\n", prefix(r.level, 4), w)
		}
		err = r.check(os.Getuid() == 0)
	}
	status := 0
	if err == nil {
		status, err = run(r, args, beside)
	}
	if err != nil && r != nil { // what the caller made for this call is there all the same
		beside.left(r.written())
	}
	return report(err, status, name, std, r)
}

func (b Beside) left(dirs []string) {
	if b.Left != nil && len(dirs) > 0 {
		b.Left(dirs)
	}
}

// written are the host's directories that are bound to be written, but for its root.
func (r *request) written() (out []string) {
	for i := range r.ops {
		o := &r.ops[i]
		if o.do == bindRW && path.IsAbs(o.source) && o.source != "/" && !slices.Contains(out, o.source) {
			out = append(out, o.source)
		}
	}
	return out
}

// report says what has failed, if anything has.
func report(err error, status int, name string, std [3]*os.File, r *request) int {
	var a asked
	var f failure
	switch {
	case err == nil:
		return status
	case errors.As(err, &a) && a == "--version":
		fmt.Fprintf(std[1], "bubblewrap %s\n", Version)
		return 0
	case errors.As(err, &a):
		help(std[1], name)
		return 0
	case errors.As(err, &usageError{}):
		help(std[2], name)
	case errors.As(err, &f):
		fmt.Fprintf(std[2], "%sbwrap: %s\n", prefix(r != nil && r.level, 3), f)
	default:
		fmt.Fprintf(std[2], "%sbwrap: %s\n", prefix(r != nil && r.level, 3), err)
	}
	return 1
}

func prefix(on bool, level int) string {
	if on {
		return "<" + strconv.Itoa(level) + ">"
	}
	return ""
}

// ownRights are the capabilities of a caller who is root, which the program keeps if nobody says otherwise.
func ownRights() uint64 {
	if os.Getuid() != 0 {
		return 0
	}
	var data [2]unix.CapUserData
	if unix.Capget(&unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}, &data[0]) != nil {
		return 0
	}
	return uint64(data[1].Effective)<<32 | uint64(data[0].Effective)
}

// mostData is how much data of descriptors a plan has room for, in bytes: process 1 writes it out of memory.
const mostData = 20 << 20

// load reads a descriptor to its end, EFBIG where that is too far away. Nothing inside gets it.
func load(fd int) ([]byte, error) {
	var out []byte
	buf := make([]byte, 16<<10)
	for {
		n, err := unix.Read(fd, buf)
		switch {
		case err == unix.EINTR:
		case err != nil:
			return nil, err
		case n == 0:
			unix.CloseOnExec(fd)
			return out, nil
		case len(out)+n > mostData:
			return nil, unix.EFBIG
		default:
			out = append(out, buf[:n]...)
		}
	}
}

// run builds the sandbox, and waits until its program has ended.
func run(r *request, args []string, beside Beside) (int, error) {
	runtime.LockOSThread()
	_ = unix.Prctl(unix.PR_SET_NAME, uintptr(namePointer()), 0, 0, 0)
	for _, fd := range r.closed() {
		unix.CloseOnExec(fd)
	}
	if err := r.keepLate(); err != nil {
		return 1, err
	}
	moved, err := moveAway()
	if err != nil {
		return 1, err
	}
	p := outline(r, caller{uid: uint32(os.Getuid()), gid: uint32(os.Getgid()), moved: moved,
		limits: limits(beside.Files)})
	first, err := child.PrepareFor(p) // the kernel makes the namespaces while the rest is planned
	if err != nil {
		return 1, words(err, p)
	}
	early := &ahead{init: first}
	defer early.End()
	h, err := here(r)
	if err == nil {
		h.under, h.asks, err = beside.Under()
	}
	if err != nil {
		return 1, err
	}
	umask := unix.Umask(0)
	unix.Umask(umask)
	if err := complete(p, r, h, uint32(umask)); err != nil {
		return 1, err
	}
	if err := p.Validate(); err != nil {
		return 1, err
	}
	m := &monitor{r: r, plan: p, under: h.under, asks: h.asks}
	must := m.under != nil || m.asks != nil // without a record nothing is run
	m.record = newRecord(beside.Logs, time.Now(), must)
	if must {
		if err := m.record.began(p, h.cwd, args); err != nil {
			return 1, err
		}
	}
	c, err := child.Start(p, stage.Stdio{0, 1, 2}, child.Hooks{Cloned: m.cloned, Fuse: m.serve, Early: early})
	if err != nil {
		return 1, words(err, p)
	}
	debug.SetGCPercent(100)
	letGo(r, moved)
	if !must { // the program runs meanwhile; who wants bubblewrap alone hears of no record
		_ = m.record.began(p, h.cwd, args)
	}
	beside.left(r.written())
	status, err := m.wait(c)
	if lost := m.record.ended(m.blocked(), status); must && err == nil {
		err = lost
	}
	return status, err
}

// ahead is process 1, cloned before its plan was complete.
type ahead struct {
	child.NoEarly
	init *child.Init
}

// Take implements child.Early.
func (a *ahead) Take(*plan.Plan, stage.Stdio, *child.Hooks) *child.Init {
	i := a.init
	a.init = nil
	return i
}

// End implements child.Early.
func (a *ahead) End() {
	if a.init != nil {
		a.init.End()
	}
}

// here looks at what planning has to know.
func here(r *request) (host, error) {
	h := host{root: os.Getuid() == 0, pid: r.pid || r.pidns >= 0, load: load, readable: doors, fuse: hasFuse()}
	h.within = child.Plain() && !h.fuse
	h.cwd, _ = os.Getwd() // as PWD spells it, like get_current_dir_name(3); "" if it was removed
	var info unix.Sysinfo_t
	if err := unix.Sysinfo(&info); err != nil {
		return h, failErrno(err, "Can't read the size of memory")
	}
	h.memory = uint64(info.Totalram) * uint64(info.Unit)
	if _, err := unix.IoctlGetTermios(1, unix.TCGETS); err == nil {
		if name, err := os.Readlink("/proc/self/fd/1"); err == nil && strings.HasPrefix(name, "/dev/") {
			h.console = name
		}
	}
	return h, nil
}

// closed are the descriptors that are nobody's inside.
func (r *request) closed() []int {
	out := append([]int{r.block, r.usernsBlock, r.info, r.status, r.filter, r.userns, r.userns2, r.pidns}, r.filters...)
	if !r.pid1 {
		out = append(out, r.sync)
	}
	for i := range r.ops {
		out = append(out, r.ops[i].fd)
	}
	n := 0
	for _, fd := range append(out, r.read...) {
		if fd > 2 {
			out[n] = fd
			n++
		}
	}
	slices.Sort(out[:n])
	return slices.Compact(out[:n])
}

// monitor is this process while the sandbox stands.
type monitor struct {
	r      *request
	plan   *plan.Plan
	under  Under
	asks   Asks
	record record
}

// cloned tells whoever wants to know of process 1, and waits for whoever maps its ids.
func (m *monitor) cloned(pid int) error {
	r := m.r
	foreign := r.userns >= 0 || r.usernsBlock >= 0
	if r.dies {
		if err := unix.Prctl(unix.PR_SET_PDEATHSIG, uintptr(unix.SIGKILL), 0, 0, 0); err != nil {
			return failErrno(err, "prctl")
		}
	}
	if !r.user && r.userns < 0 {
		if err := mapAll(pid); err != nil {
			return err
		}
	}
	if r.info >= 0 {
		if err := write(r.info, m.about(pid, "{\n    ", ",\n    ", "\n}\n")); err != nil {
			return failErrno(err, "Write to info_fd")
		}
		unix.Close(r.info)
		r.info = -1 // the number may be another's from here on
	}
	if r.status >= 0 {
		if err := write(r.status, m.about(pid, "{ ", ", ", " }\n")); err != nil {
			return failErrno(err, "Write to info_fd")
		}
	}
	if r.usernsBlock >= 0 {
		_, _ = unix.Read(r.usernsBlock, make([]byte, 1))
		unix.Close(r.usernsBlock)
		r.usernsBlock = -1
	}
	if foreign && hasServer(m.plan) {
		return servedAs(pid, m.plan.Identity.InsideUID)
	}
	return nil
}

// mapAll gives a user namespace that root has made all ids that root has.
func mapAll(pid int) error {
	for _, file := range [...]string{"uid_map", "gid_map"} {
		own, err := os.ReadFile("/proc/self/" + file)
		if err != nil {
			return err
		}
		var text strings.Builder
		for line := range strings.Lines(string(own)) {
			if f := strings.Fields(line); len(f) == 3 {
				fmt.Fprintf(&text, "%s %s %s\n", f[0], f[0], f[2])
			}
		}
		if err := os.WriteFile(fmt.Sprintf("/proc/%d/%s", pid, file), []byte(text.String()), 0); err != nil {
			return err
		}
	}
	return nil
}

// about says who process 1 is, and which namespaces are its own.
func (m *monitor) about(pid int, begin, between, end string) string {
	n, b := m.plan.Namespaces, m.plan.Bubblewrap
	text := begin + `"child-pid": ` + strconv.Itoa(pid)
	for _, x := range [...]struct {
		name string
		own  bool
	}{{"cgroup", n.Cgroup}, {"ipc", n.IPC}, {"mnt", true}, {"net", n.Net}, {"pid", !b.SharePIDs}, {"uts", n.UTS}} {
		var st unix.Stat_t
		if x.own && unix.Stat(fmt.Sprintf("/proc/%d/ns/%s", pid, x.name), &st) == nil {
			text += between + fmt.Sprintf("%q: %d", x.name+"-namespace", st.Ino)
		}
	}
	return text + end
}

func write(fd int, text string) error {
	for b := []byte(text); len(b) > 0; {
		n, err := unix.Write(fd, b)
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			return err
		}
		if n == 0 {
			return io.ErrShortWrite
		}
		b = b[n:]
	}
	return nil
}

// wait is the rest of this process's life.
func (m *monitor) wait(c *child.Child) (int, error) {
	var ws syscall.WaitStatus
	var err error
	if m.plan.Bubblewrap.Reaper {
		var ev child.Event
		ev, err = c.Next()
		ws = ev.Status
	} else {
		ws, err = c.WaitInit()
	}
	if f := c.StartFault(); f != nil {
		return 1, words(f, m.plan)
	}
	if err != nil {
		if f := c.ReaperFault(); f != nil {
			return 1, words(f, m.plan)
		}
		if ws, err = c.WaitInit(); err != nil {
			return 1, err
		}
	}
	status := ws.ExitStatus()
	if ws.Signaled() {
		status = 128 + int(ws.Signal())
	}
	if m.r.status >= 0 {
		_ = write(m.r.status, fmt.Sprintf("{ \"exit-code\": %d }\n", status))
	}
	return status, nil
}

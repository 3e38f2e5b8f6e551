//go:build linux

package selftest

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"math/rand"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"sbx.example/sbx/broker/helpertest"
	"sbx.example/sbx/broker/plan"
	"sbx.example/sbx/shared/wire"
)

// hostileFlag makes the test's own binary a hostile caller of the installed sbx-helper: "-hostile-helper CANARY HOME
// DURATION". It prints one JSON line for each attempt.
const hostileFlag = "-hostile-helper"

// attempt is one request to the helper and what must come of it.
type attempt struct {
	name    string
	reason  wire.Reason // 0: whatever happens is right if nothing was gained
	where   int64
	runs    bool // the program must have run: a negative control
	says    string
	plan    *plan.Plan
	body    []byte                    // instead of plan
	tail    func(*plan.Plan) (fd int) // nil: the plan's
	head    func(h []byte)
	fds     int // descriptors too many or too few
	send    func(sock int, h, body []byte, fds []int)
	argv    []string
	env     []string
	notSock bool
	closed  bool // without descriptors 1 and 2
	during  func(pid int) (stop func())
	started func(pid int) // process 1, when the helper has made it
	errno   syscall.Errno // process 1 must have stopped with it
	leader  bool          // of a process group
	limit   string        // in the shell's words
	more    []*os.File    // descriptors from 3 on
	errs    bool          // what the helper writes to its standard error counts as output
	as      int           // as through sudo: started by root, for the user who made the socket
	never   string        // must not be in the output
}

// result is what came of an attempt.
type result struct {
	Name   string
	Status int
	Reason wire.Reason
	Where  int64
	Fault  bool
	Says   [4]int64 // process 1's first message
	Out    string
	Left   string // what is still there although it must not be
	Wrong  string
}

// The kinds of process 1's messages about where it stopped, and that it is ready (shared/stage/control_unsafe.go).
const (
	evFault = 13
	evReady = 1
)

const argv0 = helperDir + "/sbx-helper"

// program looks for what must not be there. /x is where most attempts show something.
const program = `grep -E "^(Uid|Gid|Groups|Cap...|NoNewPrivs):" /proc/self/status
for f in /x/shadow /x/etc/shadow; do { [ -r $f ] || [ -w $f ]; } && echo GAINED $f; done
[ -f /x/secret ] && head -c 200 /x/secret
[ -f /x/secret ] && [ -w /x/secret ] && [ "$(stat -c %u /x/secret)" = 0 ] && echo GAINED a file of root
[ -f /x ] && head -c 200 /x
[ -d /x/libexec ] && { [ "$(stat -c %d /x/libexec)" = "$COVER" ] && echo COVERED || echo GAINED below a mount; }
for f in /proc/self/fd/*; do [ ${f##*/} -gt 2 ] && [ -e $f ] && echo GAINED descriptor $f; done
ls -ld /x; (echo x >/x/made) && echo WROTE
echo RAN; exit 0`

// basePlan is a small plan that the helper carries out.
func basePlan() *plan.Plan {
	id := uint32(os.Getuid())
	var st unix.Stat_t
	_ = unix.Stat(filepath.Dir(helperDir), &st)
	p := &plan.Plan{Version: plan.Version, Session: "hostile",
		Namespaces: plan.Namespaces{Net: true, IPC: true, UTS: true, Cgroup: true},
		Identity:   plan.Identity{InsideUID: id, OutsideUID: id, InsideGID: id, OutsideGID: id},
		Seccomp:    plan.Seccomp{Program: []plan.Insn{{Code: unix.BPF_RET | unix.BPF_K, K: 0x7fff0000}}},
		Process: plan.Process{Path: "/usr/bin/env", Dir: "/", Umask: 0o22,
			Argv: []plan.Bytes{"env", "sh", "-c", program},
			Env:  []plan.Bytes{"PATH=/usr/bin:/bin", plan.Bytes(fmt.Sprint("COVER=", st.Dev))}},
		Stdio: [3]plan.Stdio{plan.Inherit, plan.Inherit, plan.Inherit}}
	p.Mounts = []plan.Mount{{Kind: plan.Tmpfs, Target: "/", Size: 1 << 20, Inodes: 1000, Mode: 0o755},
		{Kind: plan.Dir, Target: "/usr", Mode: 0o755}, {Kind: plan.Bind, Target: "/usr", Source: "/usr",
			Access: plan.ReadOnly},
		{Kind: plan.Dir, Target: "/proc", Mode: 0o755}, {Kind: plan.Proc, Target: "/proc"}}
	for _, d := range []string{"/bin", "/lib", "/lib64", "/sbin"} {
		if to, err := os.Readlink(d); err == nil {
			p.Mounts = append(p.Mounts, plan.Mount{Kind: plan.Symlink, Target: d, Source: to})
		} else if _, err := os.Stat(d); err == nil {
			p.Mounts = append(p.Mounts, plan.Mount{Kind: plan.Dir, Target: d, Mode: 0o755},
				plan.Mount{Kind: plan.Bind, Target: d, Source: d, Access: plan.ReadOnly})
		}
	}
	p.Mounts = append(p.Mounts, plan.Mount{Kind: plan.Dir, Target: "/x", Mode: 0o755})
	return p
}

// with is the base plan with more operations, and change with anything else changed.
func with(more ...plan.Mount) *plan.Plan {
	p := basePlan()
	p.Mounts = append(p.Mounts, more...)
	return p
}

func change(f func(*plan.Plan)) *plan.Plan {
	p := basePlan()
	f(p)
	return p
}

// hostileCaller makes every attempt, then mutated plans for a while.
func hostileCaller(args []string) int {
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	canary, home := args[0], args[1]
	long, err := time.ParseDuration(args[2])
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	out := json.NewEncoder(os.Stdout)
	for _, a := range append(attempts(canary, home), holes(home)...) {
		_ = out.Encode(a.try())
	}
	for _, race := range races(home) {
		_ = out.Encode(race())
	}
	seed := time.Now().UnixNano()
	r, rounds, ran := rand.New(rand.NewSource(seed)), 0, 0
	for end := time.Now().Add(long); time.Now().Before(end); rounds++ {
		p := mutate(r, canary, home)
		a := attempt{name: fmt.Sprintf("fuzz, seed %d, round %d", seed, rounds), plan: p}
		switch r.Intn(4) { // what else a caller may do meanwhile
		case 0:
			a.started = func(pid int) { stopOnce(pid) }
		case 1:
			a.during = swap(home+"/race/a", home+"/race/b")
		case 2:
			a.during = swap(home+"/raced/x", home+"/raced/y")
		}
		res := a.try()
		if strings.Contains(res.Out, "RAN") {
			ran++
		}
		if res.Wrong != "" {
			b, _ := json.Marshal(p)
			res.Wrong += "; plan: " + string(b)
			_ = out.Encode(res)
		}
	}
	_ = out.Encode(result{Name: "fuzz", Out: fmt.Sprintf("%d rounds, %d ran", rounds, ran), Status: ran})
	return 0
}

// try makes the attempt, waits until nothing of it is left, and judges it.
func (a *attempt) try() (res result) {
	res.Name = a.name
	before, _ := os.ReadFile("/proc/self/mountinfo")
	pair, err := socketsOf(a.as)
	if err != nil {
		res.Wrong = err.Error()
		return res
	}
	r, w, _ := os.Pipe()
	null, _ := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	defer null.Close()
	wireEnd := os.NewFile(uintptr(pair[1]), "wire")
	first := wireEnd
	if a.notSock {
		first = null
	}
	argv := a.argv
	if argv == nil {
		argv = []string{helperDir + "/sbx-helper", "launch"}
	}
	attr := &os.ProcAttr{Env: append([]string{}, a.env...), Files: []*os.File{first, null, null}}
	if a.leader {
		attr.Sys = &syscall.SysProcAttr{Setpgid: true}
	}
	if a.closed {
		attr.Files = attr.Files[:1]
	}
	if a.errs {
		attr.Files[2] = w
	}
	attr.Files = append(attr.Files, a.more...)
	exe := argv0
	if a.limit != "" { // a shell sets it and becomes the helper
		exe, argv = "/bin/sh", []string{"sh", "-c", a.limit + "; exec " + argv0 + " launch"}
	}
	proc, err := os.StartProcess(exe, argv, attr)
	wireEnd.Close()
	if err != nil {
		unix.Close(pair[0])
		res.Wrong = "starting: " + err.Error()
		return res
	}
	stop := func() {}
	if a.during != nil {
		stop = a.during(proc.Pid)
	}
	a.request(pair[0], int(w.Fd()))
	w.Close()
	var read, heard sync.WaitGroup
	read.Add(1)
	heard.Add(1)
	var text bytes.Buffer
	go func() { defer read.Done(); _, _ = io.Copy(&text, io.LimitReader(r, 1<<16)) }()
	go func() { defer heard.Done(); listen(pair[0], &res, a.started) }()
	state, _ := proc.Wait()
	if state != nil {
		res.Status = state.ExitCode()
	}
	// When nobody holds the pipe any more the program has ended; process 1 does when nobody listens.
	slow := make(chan struct{})
	end := time.AfterFunc(2*time.Minute, func() { close(slow); _ = unix.Shutdown(pair[0], unix.SHUT_RDWR) })
	read.Wait()
	if !end.Stop() {
		<-slow
		res.Left = "the program after two minutes"
	}
	_ = unix.Shutdown(pair[0], unix.SHUT_RDWR)
	heard.Wait()
	stop()
	unix.Close(pair[0])
	r.Close()
	res.Out = text.String()
	if !reaped(2 * time.Minute) {
		res.Left += " a process"
	}
	if after, _ := os.ReadFile("/proc/self/mountinfo"); !bytes.Equal(before, after) {
		res.Left += " a mount"
	}
	a.judge(&res)
	return res
}

// tailOf is the tail that sbx would send, or an empty one.
func tailOf(p *plan.Plan) int {
	fd, err := helpertest.Tail(p)
	if err != nil {
		return emptyTail(p)
	}
	return fd
}

func emptyTail(*plan.Plan) int {
	fd, _ := unix.MemfdCreate("empty", unix.MFD_CLOEXEC)
	return fd
}

func (a *attempt) request(sock, out int) {
	body := a.body
	var fds []int
	if a.plan != nil {
		var err error
		if body, err = plan.Pack(a.plan.Setup()); err != nil { // too large, which Unpack would say
			body = []byte("no plan")
		}
		tail := a.tail
		if tail == nil {
			tail = tailOf
		}
		fd := tail(a.plan)
		defer unix.Close(fd)
		fds = append(fds, fd)
		null, _ := os.OpenFile(os.DevNull, os.O_RDWR, 0)
		defer null.Close()
		for i, kind := range a.plan.Stdio {
			if kind == plan.Inherit && i == 1 {
				fds = append(fds, out)
			} else if kind == plan.Inherit {
				fds = append(fds, int(null.Fd()))
			}
		}
	}
	for range a.fds {
		fds = append(fds, out)
	}
	if a.fds < 0 {
		fds = fds[:0]
	}
	var h [16]byte
	for i, v := range []uint32{0x31786273, wire.Version, uint32(len(body)), uint32(len(fds))} {
		binary.LittleEndian.PutUint32(h[4*i:], v)
	}
	if a.head != nil {
		a.head(h[:])
	}
	if a.send != nil {
		a.send(sock, h[:], body, fds)
		return
	}
	if a.head == nil {
		_ = helpertest.Send(sock, body, fds)
		return
	}
	_ = unix.Sendmsg(sock, h[:], nil, nil, unix.MSG_NOSIGNAL)
	_ = unix.Sendmsg(sock, body, nil, nil, unix.MSG_NOSIGNAL)
}

// listen takes in what comes on the wire until its end, or until the program said that it ran.
func listen(sock int, res *result, started func(pid int)) {
	buf, oob := make([]byte, 4096), make([]byte, 256)
	for {
		n, on, _, _, err := unix.Recvmsg(sock, buf, oob, unix.MSG_CMSG_CLOEXEC)
		// reset, once: the helper has left something unread; what it said is still there
		if err == unix.EINTR || err == unix.ECONNRESET {
			continue
		}
		if on > 0 {
			if list, err := unix.ParseSocketControlMessage(oob[:on]); err == nil {
				for i := range list {
					fds, _ := unix.ParseUnixRights(&list[i])
					for _, fd := range fds {
						unix.Close(fd)
					}
				}
			}
		}
		if n < 32 || err != nil {
			return
		}
		switch kind := int64(binary.NativeEndian.Uint64(buf)); {
		case kind == int64(wire.Refused):
			res.Reason, res.Where = wire.Reason(binary.NativeEndian.Uint64(buf[8:])), int64(binary.NativeEndian.Uint64(buf[16:]))
		case kind == int64(wire.Started):
			if started != nil {
				started(int(binary.NativeEndian.Uint64(buf[8:])))
			}
		default:
			for i := range res.Says {
				if !res.Fault {
					res.Says[i] = int64(binary.NativeEndian.Uint64(buf[8*i:]))
				}
			}
			res.Fault = true // the first other message is process 1's: a fault, or that it is ready
			if kind == evReady {
				_ = helpertest.Go(sock)
			}
		}
	}
}

// reaped waits until this process has no child.
func reaped(patience time.Duration) bool {
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(2 * time.Millisecond) {
		if _, err := syscall.Wait4(-1, nil, syscall.WNOHANG, nil); err == syscall.ECHILD {
			return true
		}
	}
	return false
}

// judge says what of res is not as it must be.
func (a *attempt) judge(res *result) {
	uid := fmt.Sprint(max(os.Getuid(), a.as))
	all4 := strings.Join([]string{uid, uid, uid, uid}, "\t")
	for line := range strings.Lines(res.Out) {
		key, value, ok := strings.Cut(strings.TrimSpace(line), ":")
		value = strings.TrimSpace(value)
		switch {
		case strings.HasPrefix(line, "GAINED"), strings.Contains(line, canaryText):
			res.Wrong = "gained: " + line
		case !ok:
		case strings.HasPrefix(key, "Cap") && strings.Trim(value, "0") != "", key == "NoNewPrivs" && value != "1",
			(key == "Uid" || key == "Gid") && value != all4, key == "Groups" && value != "":
			res.Wrong = "privilege: " + line
		}
	}
	switch ran := strings.Contains(res.Out, "RAN\n"); {
	case res.Wrong != "":
	case res.Left != "":
		res.Wrong = "left: " + res.Left
	case a.reason != 0 && (res.Reason != a.reason || res.Where != a.where || ran):
		res.Wrong = fmt.Sprintf("refused for %d at %d, want %d at %d", res.Reason, res.Where, a.reason, a.where)
	case a.errno != 0 && (res.Says[0] != evFault || res.Says[2] != int64(a.errno) || ran):
		res.Wrong = fmt.Sprintf("process 1 says %v, want that it stopped with %d (%v)", res.Says, int(a.errno), a.errno)
	case a.runs && !ran:
		res.Wrong = fmt.Sprintf("did not run: refused for %d at %d", res.Reason, res.Where)
	case a.never != "" && strings.Contains(res.Out, a.never):
		res.Wrong = "says " + a.never
	case a.says != "" && !strings.Contains(res.Out, a.says):
		res.Wrong = "does not say " + a.says
	}
}

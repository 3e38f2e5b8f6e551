//go:build linux

package selftest

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"sbx.example/sbx/broker/plan"
	"sbx.example/sbx/shared/wire"
)

// inherited are more things that a caller leaves to the helper, or tries on it.
func inherited() []attempt {
	env := make([]string, 1200)
	for i := range env {
		env[i] = fmt.Sprintf("V%d=%s", i, strings.Repeat("x", 1000))
	}
	root, err := os.Open("/")
	if err != nil {
		panic(err)
	}
	many := make([]*os.File, 200)
	for i := range many {
		many[i] = root
	}
	settings := []string{"GODEBUG=inittrace=1,gctrace=1,schedtrace=1", "GOTRACEBACK=crash", "GOGC=1"}
	list := []attempt{
		{name: "no descriptor at all", limit: "exec 0<&- 1>&- 2>&-", plan: basePlan()},
		{name: "200 descriptors of /", more: many, runs: true, plan: basePlan()},
		{name: "1.2 MB of environment", env: env, runs: true, plan: basePlan()},
		{name: "settings of Go's say nothing", env: settings, errs: true, runs: true, never: "init ", plan: basePlan()},
		{name: "settings of Go's and a bad plan say nothing", env: settings, errs: true, reason: wire.BadPlan, never: "\n",
			body: bytes.Repeat([]byte{0x1b}, 3000)},
	}
	for _, l := range []string{"-n 3", "-t 1", "-v 60000", "-s 8", "-d 0", "-l 0"} {
		list = append(list, attempt{name: "limit " + l, limit: "ulimit " + l, plan: basePlan()})
	}
	for range 5 {
		a := attempt{name: "a hand on it", plan: basePlan()}
		a.during = handOn
		list = append(list, a)
	}
	return list
}

// handOn tries what a caller must not be able to do to a helper that has real uid 0: to trace it, to read or write its
// memory, to see its descriptors, to stop or end it. It ends this process where something works, which the test hears
// of.
func handOn(pid int) func() {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	dir := "/proc/" + strconv.Itoa(pid)
	is := func() bool { // it has taken uid 0, which it keeps
		b, err := os.ReadFile(dir + "/status")
		return err == nil && strings.Contains(string(b), fmt.Sprintf("\nUid:\t0\t%d\t0\t", os.Getuid()))
	}
	tries := 0
	for end := time.Now().Add(30 * time.Millisecond); time.Now().Before(end); {
		if !is() {
			continue
		}
		tries++
		won := ""
		for _, f := range []string{"/mem", "/environ", "/maps", "/auxv", "/fd/0", "/root/etc", "/cwd/etc"} {
			if fd, err := unix.Open(dir+f, unix.O_RDONLY|unix.O_CLOEXEC, 0); err == nil {
				unix.Close(fd)
				won = f
			}
		}
		if err := unix.PtraceSeize(pid); err == nil {
			won = "ptrace"
		}
		for _, sig := range []syscall.Signal{syscall.SIGSTOP, syscall.SIGQUIT, syscall.SIGKILL} {
			if syscall.Kill(pid, sig) == nil {
				won = sig.String()
			}
		}
		if won != "" && is() {
			fmt.Fprintln(os.Stderr, "GAINED", won, "of the helper")
			os.Exit(1)
		}
	}
	return func() {}
}

// socketsOf makes the pair of sockets as the user as would: whoever makes one is who asks. 0 is this process's own.
func socketsOf(as int) (pair [2]int, err error) {
	const same = ^uintptr(0)
	raw := func(nr, a, b, c uintptr) { // on this thread alone, unlike package syscall's
		if _, _, errno := syscall.RawSyscall(nr, a, b, c); errno != 0 {
			panic(errno)
		}
	}
	if as > 0 {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		raw(unix.SYS_SETGROUPS, 0, 0, 0)
		raw(unix.SYS_SETRESGID, same, uintptr(as), same)
		raw(unix.SYS_SETRESUID, same, uintptr(as), same)
		defer raw(unix.SYS_SETRESGID, same, 0, same)
		defer raw(unix.SYS_SETRESUID, same, 0, same)
	}
	return unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
}

// sudoFlag makes the test's own binary root who starts the helper as sudo does: "-sudo-helper UID CANARY". It prints
// one JSON line for each attempt.
const sudoFlag = "-sudo-helper"

func sudoCaller(user, canary string) int {
	uid, err := strconv.Atoi(user)
	if err == nil {
		err = unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	out := json.NewEncoder(os.Stdout)
	for _, a := range sudoAttempts(uid, canary) {
		_ = out.Encode(a.try())
	}
	return 0
}

func sudoAttempts(uid int, canary string) []attempt {
	who := func(id int) func(p *plan.Plan) {
		return func(p *plan.Plan) {
			u := uint32(id)
			p.Identity = plan.Identity{InsideUID: u, OutsideUID: u, InsideGID: u, OutsideGID: u}
		}
	}
	own, text := change(who(uid)), strconv.Itoa(uid)
	shows := with(plan.Mount{Kind: plan.Bind, Target: "/x", Source: canary, Access: plan.ReadWrite})
	who(uid)(shows)
	says := func(name, u, g string) attempt {
		return attempt{name: "sudo: " + name, as: uid, env: []string{"SUDO_UID=" + u, "SUDO_GID=" + g,
			"GODEBUG=inittrace=1"}, plan: own, reason: wire.WrongCaller}
	}
	agrees := says("agrees", text, text)
	agrees.reason, agrees.runs = 0, true
	secret := says("a folder of root's", text, text)
	secret.reason, secret.plan = 0, shows
	asRoot := says("wants to be root", text, text)
	asRoot.reason, asRoot.runs, asRoot.plan = 0, true, change(who(0)) // it runs as its caller
	byRoot := says("asked by root", "0", "0")
	byRoot.as = 0
	return []attempt{agrees, secret, asRoot, byRoot, says("root's word", "0", "0"), says("another's word", "65534", text),
		says("another group", text, "0"), says("no number", "", text), says("spaces", " "+text, text)}
}

// TestHelperThroughSudo: started by root, the helper serves whoever made the socket, and only where sudo's word agrees.
func TestHelperThroughSudo(t *testing.T) {
	t.Parallel()
	needHelper(t)
	canary, _ := hostileHome(t)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	args := shop.launch("755", self, sudoFlag, strconv.Itoa(shop.uid), canary)
	args[2] = "0" // root stays root
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Env, cmd.Dir, cmd.Stderr = []string{"PATH=/usr/bin:/bin"}, "/", t.Output()
	out, err := cmd.Output()
	if err != nil {
		t.Errorf("the caller: %v", err)
	}
	if seen, want := len(resultsOf(t, out)), len(sudoAttempts(1, "/")); seen != want {
		t.Errorf("%d attempts were made, want %d", seen, want)
	}
}

// blockedFlag makes the test's own binary a caller whose own file system takes requests and never answers:
// "-blocked-helper DIR".
const blockedFlag = "-blocked-helper"

// fuseFD is the caller's descriptor of that file system's device: beyond those that whoever runs the tests leaves open.
const fuseFD = 99

// placeFuse mounts a FUSE file system of the user's on dir.
func placeFuse(dir string, uid int) error {
	fd, err := unix.Open("/dev/fuse", unix.O_RDWR, 0)
	if err != nil {
		return err
	}
	if err := unix.Dup3(fd, fuseFD, 0); err != nil {
		return err
	}
	unix.Close(fd)
	return unix.Mount("blocked", dir, "fuse", unix.MS_NOSUID|unix.MS_NODEV,
		fmt.Sprintf("fd=%d,rootmode=40755,user_id=%d,group_id=%d,allow_other", fuseFD, uid, uid))
}

// serveNothing greets the kernel (FUSE_INIT, fuse(4)), answers nothing else, and is gone when over is closed: until
// then the kernel lets whoever asked not even be killed.
func serveNothing(over <-chan struct{}) {
	defer unix.Close(fuseFD)
	if err := unix.SetNonblock(fuseFD, true); err != nil { // a read that waits would keep it open
		return
	}
	buf := make([]byte, 1<<18)
	for {
		select {
		case <-over:
			return
		default:
		}
		poll := []unix.PollFd{{Fd: fuseFD, Events: unix.POLLIN}}
		_, _ = unix.Poll(poll, 100)
		n, err := unix.Read(fuseFD, buf)
		if err == unix.EINTR || err == unix.EAGAIN {
			continue
		}
		if err != nil || n < 40 {
			return
		}
		if op := binary.NativeEndian.Uint32(buf[4:]); op == 26 {
			answer := make([]byte, 16+64)
			binary.NativeEndian.PutUint32(answer, uint32(len(answer)))
			copy(answer[8:16], buf[8:16])
			binary.NativeEndian.PutUint32(answer[16:], 7)
			binary.NativeEndian.PutUint32(answer[20:], 31)
			binary.NativeEndian.PutUint32(answer[16+20:], 1<<16) // max_write
			_, _ = unix.Write(fuseFD, answer)
		}
	}
}

func blockedCaller(dir string) int {
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	unix.CloseOnExec(fuseFD)
	over := make(chan struct{})
	go serveNothing(over)
	a := attempt{name: "a file system that never answers", reason: wire.NotStarted, plan: with(plan.Mount{Kind: plan.Bind,
		Target: "/x", Source: dir + "/below", Access: plan.ReadOnly})}
	// It answers nothing as long as the helper is there, by whatever clock: a machine that stands still for a while must
	// not let it answer first.
	a.during = func(pid int) func() {
		fd, err := unix.PidfdOpen(pid, 0)
		go func() {
			defer close(over)
			poll := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
			for end := time.Now().Add(3 * time.Minute); err == nil && poll[0].Revents == 0 && time.Now().Before(end); {
				_, _ = unix.Poll(poll, 1000)
			}
		}()
		return func() { <-over; unix.Close(fd) }
	}
	_ = json.NewEncoder(os.Stdout).Encode(a.try())
	return 0
}

// startBlocked begins that attempt, which takes as long as the helper's patience, and returns what waits for its end.
func startBlocked(t *testing.T, home string) func() {
	t.Helper()
	return startAttempt(t, shop.launch("4755+fuse:"+home+"/fuse", "/proc/self/exe", blockedFlag, home+"/fuse"))
}

// startAttempt begins an attempt of this program's own as args, and returns what waits for its end and looks at it.
func startAttempt(t *testing.T, args []string) func() {
	t.Helper()
	cmd := exec.Command(args[0], args[1:]...)
	var out bytes.Buffer
	cmd.Env, cmd.Dir, cmd.Stdout, cmd.Stderr = []string{"PATH=/usr/bin:/bin"}, "/", &out, t.Output()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return func() {
		t.Helper()
		err := cmd.Wait()
		var r result
		if e := json.Unmarshal(out.Bytes(), &r); e != nil || err != nil {
			t.Errorf("%q: %v, %v: %s", args, err, e, out.Bytes())
		} else if r.Wrong != "" {
			t.Errorf("%s: %s\n%+v", r.Name, r.Wrong, r)
		}
	}
}

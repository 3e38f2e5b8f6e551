//go:build linux

package child

import (
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sys/unix"

	"sbx.example/sbx/broker/internal/steps"
	"sbx.example/sbx/broker/plan"
	"sbx.example/sbx/selftest/plans"
	"sbx.example/sbx/shared/stage"
)

// idle starts a sandbox without a program of its own; its events are read until the test ends.
func idle(t *testing.T) *Child {
	t.Helper()
	p := plans.Smallest("/usr/bin/true")
	p.Process.Idle = true
	p.Stdio = [3]plan.Stdio{plan.Null, plan.Null, plan.Null}
	p.Mounts = append(p.Mounts[:len(p.Mounts)-1:len(p.Mounts)-1], plan.Mount{Kind: plan.Dir, Target: "/dev/pts",
		Mode: 0o755}, plan.Mount{Kind: plan.Devpts, Target: "/dev/pts"}, p.Mounts[len(p.Mounts)-1])
	if err := p.Validate(); err != nil {
		t.Fatal(err)
	}
	ready, ended := make(chan any, 1), make(chan struct{})
	go func() {
		defer close(ended)
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		c, err := Start(p, stage.Stdio{-1, -1, -1}, Hooks{})
		if err != nil {
			ready <- err
			return
		}
		ready <- c
		for err == nil {
			_, err = c.Next()
		}
		c.Kill()
		c.Close()
	}()
	c, ok := (<-ready).(*Child)
	if !ok {
		t.Fatal("no sandbox")
	}
	t.Cleanup(func() { c.SendKill(); <-ended })
	return c
}

// ran is how one spawned program did.
type ran struct {
	exit Exit
	out  string
}

// later runs a program to its end with in on its standard input.
func later(t *testing.T, c *Child, s Spawn, in string) ran {
	t.Helper()
	var r, w [2]*os.File
	for i := range r {
		var err error
		if r[i], w[i], err = os.Pipe(); err != nil {
			t.Fatal(err)
		}
	}
	defer r[1].Close()
	s.Files = [3]int{int(r[0].Fd()), int(w[1].Fd()), int(w[1].Fd())}
	if s.Dir == "" {
		s.Dir = "/"
	}
	done := make(chan Exit, 1)
	s.Exited = func(e Exit) { done <- e }
	if err := c.Spawn(s); err != nil {
		t.Fatal(err)
	}
	r[0].Close()
	w[1].Close()
	go func() { _, _ = io.WriteString(w[0], in); w[0].Close() }()
	out, err := io.ReadAll(r[1])
	if err != nil {
		t.Fatal(err)
	}
	return ran{<-done, string(out)}
}

func TestSpawnPassesEverythingOn(t *testing.T) {
	c := idle(t)
	s := Spawn{Argv: []string{"sh", "-c", "pwd; umask; echo $X; cat; exit 7"}, Path: []string{"/no/such", "/usr/bin"},
		Env: []string{"X=a b"}, Dir: "/usr", Umask: 0o27}
	r := later(t, c, s, "in\x00\xff\n")
	if want := "/usr\n0027\na b\nin\x00\xff\n"; r.out != want || r.exit.Status.ExitStatus() != 7 || r.exit.Fault != nil {
		t.Errorf("%+v, want %q and 7", r, want)
	}
	if r := later(t, c, Spawn{Argv: []string{"/usr/bin/sh", "-c", "kill -9 $$"}}, ""); !r.exit.Status.Signaled() ||
		r.exit.Status.Signal() != syscall.SIGKILL {
		t.Errorf("%+v, want killed", r)
	}
}

// What a program starts with is what it was given: no descriptor, privilege, blocked signal or session of anybody's.
// ownIgnored is the set of signals that this process ignores, which it may have from whoever ran the tests in the
// background: like nohup(1), that reaches the programs inside.
func ownIgnored(t *testing.T) string {
	b, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Fatal(err)
	}
	_, after, _ := strings.Cut(string(b), "SigIgn:\t")
	set, _, _ := strings.Cut(after, "\n")
	return set
}

func TestSpawnInheritsNothing(t *testing.T) {
	c := idle(t)
	r := later(t, c, Spawn{Argv: []string{"/usr/bin/sh", "-c",
		"cat /proc/self/status; ls /proc/self/fd; cut -d' ' -f6 /proc/$$/stat; echo pid $$"},
		Env: []string{"PATH=/usr/bin"}}, "")
	for _, want := range []string{"CapPrm:\t0000000000000000", "CapBnd:\t0000000000000000", "NoNewPrivs:\t1",
		"Seccomp:\t2", "SigBlk:\t0000000000000000", "SigIgn:\t" + ownIgnored(t), "PPid:\t"} {
		if !strings.Contains(r.out, want) {
			t.Errorf("%q missing in\n%s", want, r.out)
		}
	}
	_, rest, _ := strings.Cut(r.out, "nonvoluntary_ctxt_switches")
	f := strings.Fields(rest)[2:]
	// ls itself has its directory open as 3.
	if len(f) < 7 || strings.Join(f[:4], " ") != "0 1 2 3" || f[4] != f[6] {
		t.Errorf("descriptors, session, pid: %q", f)
	}
}

func TestSpawnFaults(t *testing.T) {
	c := idle(t)
	for _, x := range []struct {
		s     Spawn
		step  string
		errno syscall.Errno
	}{
		{Spawn{Argv: []string{"no-such"}, Path: []string{"/usr/bin", "/bin"}}, steps.ExecStep, unix.ENOENT},
		{Spawn{Argv: []string{"no-such"}}, steps.ExecStep, unix.ENOENT},
		{Spawn{Argv: []string{"lib"}, Path: []string{"/no", "/usr"}}, steps.ExecStep, unix.EACCES},
		{Spawn{Argv: []string{"/usr/no-such"}}, steps.ExecStep, unix.ENOENT},
		{Spawn{Argv: []string{"/usr/lib"}}, steps.ExecStep, unix.EACCES},
		{Spawn{Argv: []string{"/usr/bin/true"}, Dir: "/no-such"}, "entering directory", unix.ENOENT},
	} {
		r := later(t, c, x.s, "")
		if f := r.exit.Fault; f == nil || f.Errno != x.errno || f.Step != x.step {
			t.Errorf("%q: %v, want %s: %v", x.s.Argv, f, x.step, x.errno)
		}
	}
	if r := later(t, c, Spawn{Argv: []string{"/usr/bin/true"}}, ""); r.exit.Status != 0 || r.exit.Fault != nil {
		t.Errorf("after the faults: %+v", r)
	}
}

// TestSpawnNoLinks: a directory behind a link is none where nobody wants to follow one.
func TestSpawnNoLinks(t *testing.T) {
	c := idle(t)
	for _, dir := range []string{"/", "/usr/bin", "/proc/self/"} {
		s := Spawn{Argv: []string{"/usr/bin/true"}, Dir: dir}
		if r := later(t, c, s, ""); r.exit.Status != 0 || r.exit.Fault != nil {
			t.Errorf("%s: %+v", dir, r)
		}
		s.NoLinks = true
		r := later(t, c, s, "")
		if link := dir == "/proc/self/"; link != (r.exit.Fault != nil) || link && (r.exit.Fault.Errno != unix.ENOTDIR ||
			r.exit.Fault.Step != "entering directory") {
			t.Errorf("%s without links: %+v", dir, r)
		}
	}
}

// TestSpawnManyArguments: the only limit is the kernel's, also for the shortest strings, which are dearest here.
func TestSpawnManyArguments(t *testing.T) {
	c := idle(t)
	many := func(s string, n int) []string {
		return append([]string{"/usr/bin/sh", "-c", "echo $#", "sh"}, slices.Repeat([]string{s}, n)...)
	}
	for _, x := range []struct {
		s    string
		n    int
		want string
	}{{"a name", 20_000, "20000\n"}, {strings.Repeat("x", 100<<10), 3, "3\n"}, {"", 200_000, "200000\n"}} {
		if r := later(t, c, Spawn{Argv: many(x.s, x.n)}, ""); r.out != x.want {
			t.Errorf("%d of %d bytes: %+v", x.n, len(x.s), r)
		}
	}
	for _, argv := range [][]string{many("a name", 500_000), many(strings.Repeat("x", 200<<10), 1)} {
		if f := later(t, c, Spawn{Argv: argv}, "").exit.Fault; f == nil || f.Errno != unix.E2BIG || f.Step != steps.ExecStep {
			t.Errorf("%d arguments: %v, want the kernel's refusal", len(argv), f)
		}
	}
	err := c.Spawn(Spawn{Argv: many(strings.Repeat("x", 100<<10), 150), Dir: "/"})
	if err != errTooLarge {
		t.Errorf("15 MiB: %v", err)
	}
}

func TestSpawnTerminal(t *testing.T) {
	c := idle(t)
	pty, done := make(chan *os.File, 1), make(chan Exit, 1)
	err := c.Spawn(Spawn{Argv: []string{"/usr/bin/sh", "-c", "tty; stty size; exec cat"}, Env: []string{"PATH=/usr/bin"},
		Dir: "/", TTY: true, Rows: 33, Cols: 44,
		Pty: func(f *os.File) { pty <- f }, Exited: func(e Exit) { done <- e }})
	if err != nil {
		t.Fatal(err)
	}
	master := <-pty
	fd, err := unix.FcntlInt(master.Fd(), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	master.Close()
	_ = unix.SetNonblock(fd, true)
	f := os.NewFile(uintptr(fd), "pty")
	defer f.Close()
	var out []byte
	hear := func(want string) {
		t.Helper()
		_ = f.SetReadDeadline(time.Now().Add(20 * time.Second))
		for buf := make([]byte, 100); !strings.Contains(string(out), want); {
			n, err := f.Read(buf)
			if out = append(out, buf[:n]...); err != nil {
				t.Fatalf("%v after %q, want %q", err, out, want)
			}
		}
		out = nil
	}
	hear("33 44")
	_, _ = f.WriteString("abc\n")
	hear("abc\r\nabc\r\n")
	_, _ = f.WriteString("\x03")
	if e := <-done; !e.Status.Signaled() || e.Status.Signal() != syscall.SIGINT {
		t.Errorf("after Ctrl-C: %+v", e)
	}
}

// Many at once, in a sandbox that starts orphans as well: each has its own output and status.
func TestSpawnMany(t *testing.T) {
	c := idle(t)
	var wg sync.WaitGroup
	for i := range 200 {
		wg.Add(1)
		go func() {
			defer wg.Done()
			r := later(t, c, Spawn{Argv: []string{"/usr/bin/sh", "-c", fmt.Sprintf("(true & true &); echo %d; exit %d", i,
				i%100)}}, "")
			if r.out != fmt.Sprintf("%d\n", i) || r.exit.Status.ExitStatus() != i%100 || r.exit.Fault != nil {
				t.Errorf("%d: %+v", i, r)
			}
		}()
	}
	wg.Wait()
	c.spawns.mu.Lock()
	defer c.spawns.mu.Unlock()
	if len(c.spawns.byID) > 0 {
		t.Error("the table is not empty")
	}
}

// A start that does not come to its end, because somebody is asked about it or stops it, holds up nobody.
func TestSpawnWhileAnotherIsStuck(t *testing.T) {
	c := idle(t)
	tape := c.block.take(0, 1<<40)
	tape.Call(unix.SYS_PPOLL, 0, 0, 0, 0, 0)
	c.block.slots[0].load(tape)
	m := stage.Message{Kind: stage.CmdSpawn}
	if err := unix.Sendmsg(c.sock, m.Encode(), unix.UnixRights(c.Pidfd, c.Pidfd, c.Pidfd), nil, 0); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if r := later(t, c, Spawn{Argv: []string{"/usr/bin/true"}}, ""); r.exit.Status != 0 || r.exit.Fault != nil {
			t.Errorf("%+v", r)
		}
	}
	if c.block.slots[0].free() {
		t.Error("nothing was stuck")
	}
	// What is stuck can be neither traced nor read from inside, nor can process 1; an ordinary user does not even see
	// them.
	r := later(t, c, Spawn{Argv: []string{"/usr/bin/sh", "-c",
		"for p in 1 2; do if test -d /proc/$p; then cat /proc/$p/maps /proc/$p/environ /proc/$p/fd/0; else echo absent; " +
			"fi; done 2>&1"}, Env: []string{"PATH=/usr/bin"}}, "")
	if n := strings.Count(r.out, "Permission denied") + 3*strings.Count(r.out, "absent"); n < 6 {
		t.Errorf("%d refusals:\n%s", n, r.out)
	}
	_ = c.Signal(-1, syscall.SIGKILL)
}

func TestSpawnEndsWithTheSandbox(t *testing.T) {
	c := idle(t)
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	fd := int(null.Fd())
	done := make(chan Exit, 1)
	if err := c.Spawn(Spawn{Argv: []string{"/usr/bin/sleep", "100"}, Dir: "/", Files: [3]int{fd, fd, fd},
		Exited: func(e Exit) { done <- e }}); err != nil {
		t.Fatal(err)
	}
	c.SendKill()
	if e := <-done; !IsGone(e.Err) {
		t.Errorf("%+v", e)
	}
	for err == nil { // until the sandbox's end was noticed
		err = c.Spawn(Spawn{Argv: []string{"/usr/bin/true"}, Dir: "/", Files: [3]int{fd, fd, fd}, Exited: func(Exit) {}})
		time.Sleep(time.Millisecond)
	}
}

func BenchmarkSpawn(b *testing.B) {
	// The sandbox's events are read by a goroutine of its own, as in the broker.
	t := &testing.T{}
	c := idle(t)
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		b.Fatal(err)
	}
	defer null.Close()
	fd := int(null.Fd())
	done := make(chan Exit, 1)
	for b.Loop() {
		if err := c.Spawn(Spawn{Argv: []string{"/usr/bin/true"}, Dir: "/", Files: [3]int{fd, fd, fd}, Exited: func(e Exit) {
			done <- e
		}}); err != nil {
			b.Fatal(err)
		}
		<-done
	}
	c.SendKill()
}

// TestSignalNowIsNotWaitedForLong: a process 1 that does not answer holds nobody up, and what it says later is for
// nobody. One that answers is the control.
func TestSignalNowIsNotWaitedForLong(t *testing.T) {
	for _, answers := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
			if err != nil {
				t.Fatal(err)
			}
			defer unix.Close(pair[0])
			defer unix.Close(pair[1])
			c, said := &Child{sock: pair[0]}, make(chan error, 1)
			go func() { said <- c.SignalNow(-2, syscall.SIGINT) }()
			synctest.Wait()
			if answers {
				c.killed(stage.Message{PID: 1})
			}
			switch err := <-said; {
			case answers && err != nil:
				t.Errorf("it answered, and %v", err)
			case !answers && !errors.Is(err, os.ErrDeadlineExceeded):
				t.Errorf("it did not answer: %v", err)
			}
			if len(c.spawns.kills) != 0 {
				t.Errorf("answers that somebody waits for: %v", c.spawns.kills)
			}
			c.killed(stage.Message{PID: 1})
		})
	}
}

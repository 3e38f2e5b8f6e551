//go:build linux

package agent

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"sbx.example/sbx/broker/internal/child"
	"sbx.example/sbx/broker/internal/steps"
	"sbx.example/sbx/broker/plan"
	"sbx.example/sbx/selftest/need"
	"sbx.example/sbx/selftest/plans"
	"sbx.example/sbx/shared/stage"
)

// guest runs a shell script in a sandbox with an agent; /g is an empty directory and /g/f an empty file.
func guest(t *testing.T, script string, more ...plan.Mount) (a *Agent, wait func() (string, int)) {
	t.Helper()
	p := plans.Smallest("/usr/bin/sh", "-c", script)
	last := len(p.Mounts) - 1
	p.Mounts = append(append(p.Mounts[:last:last], plan.Mount{Kind: plan.Dir, Target: "/g", Mode: 0o755},
		plan.Mount{Kind: plan.File, Target: "/f", Mode: 0o644}), append(more, p.Mounts[last])...)
	p.Fds = []plan.FdRole{plan.FdUserNS, plan.FdMountNS}
	if err := p.Validate(); err != nil {
		t.Fatal(err)
	}
	f, err := os.Create(filepath.Join(t.TempDir(), "out"))
	if err != nil {
		t.Fatal(err)
	}
	type outcome struct {
		out  string
		code int
	}
	started, done := make(chan *child.Child), make(chan outcome, 1)
	closing, closed := make(chan struct{}), make(chan struct{})
	go func() { // the sandbox lives as long as its thread
		runtime.LockOSThread()
		c, err := child.Start(p, stage.Stdio{-1, int(f.Fd()), int(f.Fd())}, child.Hooks{})
		if err != nil {
			t.Errorf("start: %v", err)
			started <- nil
			return
		}
		started <- c
		ev, err := c.Next()
		b, _ := os.ReadFile(f.Name())
		if err != nil { // killed at the end of the test
			b = []byte(err.Error())
		}
		done <- outcome{string(b), ev.Status.ExitStatus()}
		<-closing
		c.Kill()
		c.Close()
		f.Close()
		close(closed)
	}()
	c := <-started
	if c == nil {
		t.FailNow()
	}
	user, inside := c.Fds[plan.FdUserNS], c.Fds[plan.FdMountNS]
	delete(c.Fds, plan.FdUserNS)
	delete(c.Fds, plan.FdMountNS)
	a = New(user, inside)
	t.Cleanup(func() {
		a.Close()
		c.SendKill()
		close(closing)
		<-closed
	})
	return a, func() (string, int) {
		select {
		case o := <-done:
			return o.out, o.code
		case <-time.After(60 * time.Second):
			t.Fatal("the program did not end")
			return "", 0
		}
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

const waitFor = "until [ -e %s ]; do sleep 0.05; done; "

func TestAgentGrafts(t *testing.T) {
	host := t.TempDir()
	if err := os.WriteFile(host+"/x", []byte("hello\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	a, wait := guest(t, fmt.Sprintf(waitFor+
		"cat /g/x; echo no > /g/x || echo refused; until [ -s /f ]; do sleep 0.05; done; echo more >> /f; echo end", "/g/x"))
	if err := a.Graft(Graft{Source: host, Target: "/g", Access: plan.ReadOnly}); err != nil {
		t.Fatal(err)
	}
	if err := a.Graft(Graft{Source: host + "/x", Target: "/f", Access: plan.ReadWrite}); err != nil {
		t.Fatal(err)
	}
	out, code := wait()
	b, _ := os.ReadFile(host + "/x")
	if code != 0 || !strings.Contains(out, "hello\n") ||
		!strings.Contains(out, "Read-only file system\nrefused\nend\n") || string(b) != "hello\nmore\n" {
		t.Fatalf("exit %d, output %q, host file %q", code, out, b)
	}
}

// TestAgentFaults: what cannot be mounted is refused with its reason, and the agent goes on.
func TestAgentFaults(t *testing.T) {
	host := t.TempDir()
	if err := os.Symlink(host, host+"/link"); err != nil {
		t.Fatal(err)
	}
	a, _ := guest(t, "sleep 60")
	for _, c := range []struct {
		name string
		g    Graft
		want unix.Errno
	}{
		{"no source", Graft{Source: host + "/none", Target: "/g", Access: plan.ReadOnly}, unix.ENOENT},
		{"no target", Graft{Source: host, Target: "/none", Access: plan.ReadOnly}, unix.ENOENT},
		{"a link", Graft{Source: host + "/link", Target: "/g", Access: plan.ReadOnly}, unix.EINVAL},
		{"below a link", Graft{Source: host + "/link/x", Target: "/g", Access: plan.ReadOnly}, unix.ELOOP},
		{"another object", Graft{Source: host, Target: "/g", Access: plan.ReadOnly, Dev: 1, Ino: 1}, unix.ESTALE},
		{"a tree on a file", Graft{Source: host, Target: "/f", Access: plan.ReadOnly}, unix.EINVAL},
	} {
		var f *steps.Fault
		if err := a.Graft(c.g); !errors.As(err, &f) || f.Errno != c.want {
			t.Errorf("%s: %v, want %v", c.name, err, c.want)
		}
	}
	for _, p := range []string{"", "relative", "/a/../b", "/nul\x00"} {
		if err := a.Graft(Graft{Source: p, Target: "/g", Access: plan.ReadOnly}); err == nil {
			t.Errorf("grafted from %q", p)
		}
		if err := a.Graft(Graft{Source: host, Target: p, Access: plan.ReadOnly}); err == nil {
			t.Errorf("grafted to %q", p)
		}
	}
	if err := a.Graft(Graft{Source: host, Target: "/g", Access: plan.ReadOnly}); err != nil {
		t.Errorf("after the faults: %v", err)
	}
}

func TestAgentUngrafts(t *testing.T) {
	host := t.TempDir()
	if err := os.WriteFile(host+"/x", []byte("hello\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	said, until := saying(t)
	a, wait := guest(t, fmt.Sprintf(waitFor+
		"exec 3< /g/x; : >/said/opened; while [ -e /g/x ]; do sleep 0.05; done; cat <&3", "/g/x"), said...)
	if err := a.Graft(Graft{Source: host, Target: "/g", Access: plan.ReadOnly}); err != nil {
		t.Fatal(err)
	}
	until("opened")
	if err := a.Ungraft("/g", nil); err != nil {
		t.Fatal(err)
	}
	if out, code := wait(); code != 0 || out != "hello\n" {
		t.Fatalf("exit %d, output %q", code, out)
	}
	if err := a.Ungraft("/g", nil); err == nil {
		t.Error("unmounted what is not mounted")
	}
}

// TestAgentUngraftsOverNoLink: where a link has taken the place of a directory on the way nothing is unmounted, neither
// a file nor a directory. In the place itself both are, which is the control.
func TestAgentUngraftsOverNoLink(t *testing.T) {
	host, tree := t.TempDir(), t.TempDir()
	for _, dir := range []string{"at", "other"} {
		for _, err := range []error{os.MkdirAll(filepath.Join(tree, dir, "d"), 0o755),
			os.WriteFile(filepath.Join(tree, dir, "f"), nil, 0o644)} {
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := os.WriteFile(host+"/x", []byte("covers\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	said, until := saying(t)
	a, wait := guest(t, fmt.Sprintf(waitFor, "/said/on")+"mv /g/at /g/was; ln -s other /g/at; : >/said/linked; "+
		fmt.Sprintf(waitFor, "/said/tried")+"cat /g/other/f; ls /g/other/d; rm /g/at; mv /g/was /g/at; : >/said/back; "+
		fmt.Sprintf(waitFor, "/said/off")+"cat /g/at/f; ls /g/at/d", said...)
	on := func(source, target string) {
		t.Helper()
		if err := a.Graft(Graft{Source: source, Target: target, Access: plan.ReadWrite}); err != nil {
			t.Fatal(err)
		}
	}
	say := func(name string) {
		if err := os.WriteFile(filepath.Join(said[1].Source, name), nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	on(tree, "/g")
	for _, dir := range []string{"/g/at", "/g/other"} {
		on(host+"/x", dir+"/f")
		on(host, dir+"/d")
	}
	say("on")
	until("linked")
	for _, p := range []string{"/g/at/f", "/g/at/d"} {
		if err := a.Ungraft(p, nil); err == nil {
			t.Errorf("%s was unmounted, over a link", p)
		}
	}
	say("tried")
	until("back")
	for _, p := range []string{"/g/at/f", "/g/at/d"} {
		if err := a.Ungraft(p, nil); err != nil {
			t.Error(err)
		}
	}
	say("off")
	if out, code := wait(); code != 0 || out != "covers\nx\n" {
		t.Errorf("exit %d, output %q", code, out)
	}
}

// TestAgentKnowsWhatItMeans: what is unmounted, or mounted on, is what was meant, whatever has its path by then.
func TestAgentKnowsWhatItMeans(t *testing.T) {
	host := t.TempDir()
	object := func(p string) *Object {
		var st unix.Stat_t
		if err := unix.Lstat(p, &st); err != nil {
			t.Fatal(err)
		}
		return &Object{st.Dev, st.Ino}
	}
	if err := os.Mkdir(host+"/real", 0o755); err != nil {
		t.Fatal(err)
	}
	for _, f := range []string{"/real/f", "/cover", "/other"} {
		if err := os.WriteFile(host+f, []byte(f), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	a, _ := guest(t, "sleep 60")
	faults := func(what string, err error, want unix.Errno) {
		t.Helper()
		if f := (*steps.Fault)(nil); !errors.As(err, &f) || f.Errno != want {
			t.Errorf("%s: %v, want %v", what, err, want)
		}
	}
	if err := a.Graft(Graft{Source: host, Target: "/g", Access: plan.ReadWrite}); err != nil {
		t.Fatal(err)
	}
	cover := Graft{Source: host + "/cover", Target: "/g/real/f", Access: plan.ReadOnly}
	cover.On = object(host + "/other")
	pid := a.PID()
	faults("on another object", a.Graft(cover), unix.ESTALE)
	if a.PID() != pid {
		t.Error("another agent was started, which sees nothing else there")
	}
	faults("nothing mounted", a.Mounted("/g/real/f"), unix.EINVAL)
	cover.On = object(host + "/real/f")
	if err := a.Graft(cover); err != nil {
		t.Fatal(err)
	}
	faults("another mount", a.Ungraft("/g/real/f", object(host+"/real/f")), unix.ESTALE)
	if err := a.Mounted("/g/real/f"); err != nil {
		t.Errorf("the cover does not stand any more: %v", err)
	}
	if err := a.Ungraft("/g/real/f", object(host+"/cover")); err != nil {
		t.Error(err)
	}
	faults("taken away", a.Mounted("/g/real/f"), unix.EINVAL)
}

// TestAgentOutOfReach: the program neither sees nor reaches the agent, which holds no descriptor of the caller's.
func TestAgentOutOfReach(t *testing.T) {
	a, _ := guest(t, "sleep 60")
	if err := a.Mounted("/"); err != nil {
		t.Fatal(err)
	}
	pid := a.PID()
	if pid == 0 {
		t.Fatal("no agent")
	}
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(between(string(b), "NSpid:", "\n"), "\t"); n != 1 {
		t.Errorf("the agent is in another PID namespace: %q", between(string(b), "NSpid:", "\n"))
	}
	if !strings.Contains(string(b), fmt.Sprintf("CapEff:\t%016x\n", agentCaps)) {
		t.Errorf("capabilities: %s", between(string(b), "CapEff:", "\n"))
	}
	if os.Geteuid() == 0 {
		list, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", pid))
		for try := 0; err == nil && len(list) > 4 && try < 1000; try++ { // it closes those of an order after its answer
			time.Sleep(10 * time.Millisecond)
			list, err = os.ReadDir(fmt.Sprintf("/proc/%d/fd", pid))
		}
		if err != nil || len(list) != 4 {
			t.Errorf("descriptors %v, %v, want the socket, two namespaces and a root", list, err)
		}
	}
	// Killed, it is started anew by the next order.
	if err := unix.Kill(pid, unix.SIGKILL); err != nil {
		t.Fatal(err)
	}
	for a.PID() != 0 {
		time.Sleep(10 * time.Millisecond)
	}
	if err := a.Mounted("/"); err != nil || a.PID() == 0 || a.PID() == pid {
		t.Fatalf("after it was killed: %v, pid %d", err, a.PID())
	}
	a.Close()
	if err := a.Mounted("/"); err == nil {
		t.Error("a closed agent took an order")
	}
}

// An order that waits for an agent which is killed before it begins is another one's. One that was begun may have been
// carried out in part, and is nobody's.
func TestAgentKilledBeforeAnOrder(t *testing.T) {
	a, _ := guest(t, "sleep 60")
	must(t, a.Mounted("/"))
	for _, begun := range []bool{false, true} {
		pid, sock, b := a.PID(), a.proc.sock, a.proc.b
		must(t, unix.Kill(pid, unix.SIGSTOP))
		stat := func() string { s, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid)); return string(s) }
		for !strings.Contains(stat(), ") T ") {
			time.Sleep(time.Millisecond)
		}
		done := make(chan error)
		go func() { done <- a.Mounted("/") }()
		for n := 0; n == 0; time.Sleep(time.Millisecond) { // until the order is in the socket
			var err error
			n, err = unix.IoctlGetInt(sock, unix.TIOCOUTQ)
			must(t, err)
		}
		if begun {
			b.begun = 1
		}
		must(t, unix.Kill(pid, unix.SIGKILL))
		if err := <-done; begun != errors.Is(err, ErrNoAgent) || !begun && (err != nil || a.PID() == pid) {
			t.Fatalf("begun %v: %v", begun, err)
		}
	}
}

func TestAgentDetaches(t *testing.T) {
	host := t.TempDir()
	if err := os.WriteFile(host+"/x", []byte("hello\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	var st unix.Stat_t
	if err := unix.Stat(host, &st); err != nil {
		t.Fatal(err)
	}
	a, _ := guest(t, "sleep 60")
	if _, err := a.Detach(Graft{Source: host, Access: plan.ReadOnly, Dev: st.Dev, Ino: st.Ino + 1}); !errors.Is(err,
		unix.ESTALE) {
		t.Errorf("another object: %v", err)
	}
	f, err := a.Detach(Graft{Source: host, Access: plan.ReadOnly, Dev: st.Dev, Ino: st.Ino})
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	fd, err := unix.Openat(int(f.Fd()), "x", unix.O_RDONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	unix.Close(fd)
	if _, err := unix.Openat(int(f.Fd()), "x", unix.O_RDWR, 0); err != unix.EROFS {
		t.Errorf("opening for writing: %v, want EROFS", err)
	}
}

// saying is a directory in which a guest makes files to say how far it is, and the wait for one.
func saying(t *testing.T) ([]plan.Mount, func(name string)) {
	dir := t.TempDir()
	return []plan.Mount{{Kind: plan.Dir, Target: "/said", Mode: 0o755}, {Kind: plan.Bind, Source: dir, Target: "/said",
			Access: plan.ReadWrite}}, func(name string) {
			t.Helper()
			for end := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
				if _, err := os.Stat(filepath.Join(dir, name)); err == nil {
					return
				}
				if time.Now().After(end) {
					t.Fatalf("the guest did not come to %q", name)
				}
			}
		}
}

func between(s, from, to string) string {
	_, s, _ = strings.Cut(s, from)
	s, _, _ = strings.Cut(s, to)
	return s
}

// TestAgentPlaces: a root that nobody inside can write gets places to mount on, and goes on being read-only.
func TestAgentPlaces(t *testing.T) {
	host := t.TempDir()
	if err := os.WriteFile(host+"/x", []byte("hello\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	said, until := saying(t)
	deep := "/p" + strings.Repeat("/d", 30)
	a, wait := guest(t, fmt.Sprintf(waitFor+
		"cat %[1]s /to; mkdir /p/n || echo kept; mkdir /n || echo kept; ls %[2]s; : >/said/seen; until [ ! -e /p/gone ]; "+
		"do sleep 0.05; done; until [ ! -e %[1]s ]; do sleep 0.05; done; echo end",
		deep+"/dir/x", deep+"/file"), said...)
	for _, p := range []string{"/", "/p", deep + "/dir", "/p/gone", "/p/gone"} {
		if err := a.Place(p, SpotDir, ""); err != nil {
			t.Fatal(err)
		}
	}
	if err := a.Place("/to", SpotLink, deep[1:]+"/dir/x"); err != nil {
		t.Fatal(err)
	}
	if err := a.Place(deep+"/file", SpotFile, ""); err != nil {
		t.Fatal(err)
	}
	if err := a.Unplace("/p"); !errors.Is(err, unix.ENOTEMPTY) {
		t.Errorf("taking away what holds something: %v", err)
	}
	if err := a.Graft(Graft{Source: host, Target: deep + "/dir", Access: plan.ReadOnly}); err != nil {
		t.Fatal(err)
	}
	if err := a.Unplace(deep + "/dir"); !errors.Is(err, unix.EBUSY) {
		t.Errorf("taking away what is mounted on: %v", err)
	}
	if err := a.Unplace("/p/gone"); err != nil {
		t.Error(err)
	}
	if err := a.Unplace("/none"); err != nil {
		t.Error(err)
	}
	until("seen")
	if err := a.Ungraft(deep+"/dir", nil); err != nil {
		t.Error(err)
	}
	out, code := wait()
	if want := "hello\nhello\nmkdir: cannot create directory '/p/n': Read-only file system\nkept\n"; code != 0 ||
		!strings.Contains(strings.NewReplacer("‘", "'", "’", "'").Replace(out), want) ||
		!strings.Contains(out, "file\nend") {
		t.Errorf("exit %d, output %q", code, out)
	}
}

// A mount goes beneath the one that stands at a place, and is seen when that is taken away: at no moment is there none.
func TestAgentGraftsBeneath(t *testing.T) {
	mounts, until := saying(t)
	dir := t.TempDir()
	for _, name := range []string{"old", "new"} {
		must(t, os.WriteFile(filepath.Join(dir, name), []byte(name+"\n"), 0o644))
	}
	a, wait := guest(t, `until [ -s /f ]; do :; done
until x=$(cat /f); [ "$x" = new ]; do echo "$x"; : >/said/seen; done | sort -u; cat /f
grep -c " /f " /proc/self/mountinfo`, mounts...)
	var st unix.Stat_t
	must(t, unix.Lstat(filepath.Join(dir, "old"), &st))
	old := Object{st.Dev, st.Ino}
	g := Graft{Source: filepath.Join(dir, "old"), Target: "/f", Access: plan.ReadOnly}
	must(t, a.Graft(g))
	until("seen")
	g.Source, g.On, g.Beneath = filepath.Join(dir, "new"), &old, true
	err := a.Graft(g)
	if errors.Is(err, unix.EINVAL) {
		need.Fact(t, false, "a kernel that mounts beneath others (Linux 6.5)")
	}
	must(t, err)
	must(t, a.Ungraft("/f", &old))
	if out, code := wait(); code != 0 || out != "old\nnew\n1\n" {
		t.Errorf("%q, status %d", out, code)
	}
}

//go:build linux

package notify

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	mounter "sbx.example/sbx/broker/internal/agent"
	"sbx.example/sbx/broker/internal/child"
	"sbx.example/sbx/broker/plan"
	"sbx.example/sbx/seccompbpf"
	"sbx.example/sbx/selftest/need"
	"sbx.example/sbx/shared/stage"
)

// TestMain makes the test binary the program that runs inside as well.
func TestMain(m *testing.M) {
	if name := os.Getenv("SBX_GUEST"); name != "" {
		os.Exit(guest(name, os.Args[1:]))
	}
	os.Exit(m.Run())
}

// world is one sandbox and the host directory that it is cut out of:
// gated/ is not mounted and may be asked for, secret/ is denied, ro/ and rw/ are mounted.
type world struct {
	t    *testing.T
	dir  string
	self string // where the test binary lies
	opt  Options
	tog  seccompbpf.Toggles
	prog []plan.Insn
	net  bool // the host's network

	agent bool // what is granted can be mounted

	mu    sync.Mutex
	asks  []Ask
	notes []Note
	pid   int // process 1 of the sandbox

	listener int
}

func newWorld(t *testing.T) *world {
	t.Helper()
	dir, err := os.MkdirTemp("/var/tmp", "sbx-notify-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	if dir, err = filepath.EvalSymlinks(dir); err != nil {
		t.Fatal(err)
	}
	os.Chmod(dir, 0o755)
	w := &world{t: t, dir: dir, tog: seccompbpf.Toggles{Notify: true}}
	for _, d := range []string{"gated/sub", "secret", "ro", "rw", "bin"} {
		if err := os.MkdirAll(filepath.Join(dir, d), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	w.file("gated/yes", "YES")
	w.file("gated/no", "NO!")
	w.file("gated/sub/deep", "DEEP")
	w.file("secret/key", "KEY")
	w.file("ro/pub", "PUBLIC")
	w.link("gated/link", "yes")
	w.link("gated/out", w.path("secret/key"))
	w.link("gated/in", w.path("ro/pub"))
	w.link("ro/tolink", w.path("gated/yes"))
	self, _ := os.Executable()
	b, err := os.ReadFile(self)
	if err != nil {
		t.Fatal(err)
	}
	w.self = w.path("bin/guest")
	if err := os.WriteFile(w.self, b, 0o755); err != nil {
		t.Fatal(err)
	}
	w.opt.View = view{w.dir}
	w.opt.Ask = func(_ context.Context, a Ask) Answer { return Answer{Allow: !strings.HasSuffix(a.Path, "/no")} }
	return w
}

func (w *world) path(p string) string { return filepath.Join(w.dir, p) }

func (w *world) file(p, text string) {
	if err := os.WriteFile(w.path(p), []byte(text), 0o644); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) link(p, to string) {
	if err := os.Symlink(to, w.path(p)); err != nil {
		w.t.Fatal(err)
	}
}

// view is what the test's plan says.
type view struct{ dir string }

func below(p, dir string) bool { return p == dir || strings.HasPrefix(p, dir+"/") }

func (v view) Visible(p string) bool {
	for _, d := range []string{"/usr", "/lib", "/lib64", "/bin", "/tmp", v.dir + "/ro", v.dir + "/rw", v.dir + "/bin"} {
		if below(p, d) {
			return true
		}
	}
	return false
}
func (v view) Gated(p string) bool { return below(p, v.dir+"/gated") }
func (v view) Denied(p string) (bool, syscall.Errno) {
	return below(p, v.dir+"/secret"), unix.EPERM
}
func (v view) Whole(p string) bool { return below(p, v.dir+"/gated/sub") }

func (w *world) plan(guestName string, argv []string) *plan.Plan {
	p := &plan.Plan{Version: plan.Version, Session: "t", Loopback: !w.net,
		Namespaces: plan.Namespaces{User: true, Net: !w.net, IPC: true, UTS: true, Cgroup: true},
		Identity: plan.Identity{InsideUID: 1000, OutsideUID: uint32(os.Getuid()), InsideGID: 1000,
			OutsideGID: uint32(os.Getgid())},
		Mounts: []plan.Mount{
			{Kind: plan.Tmpfs, Target: "/", Size: 1 << 20, Inodes: 1000, Mode: 0o755},
			{Kind: plan.Dir, Target: "/usr", Mode: 0o755}, {Kind: plan.Bind, Source: "/usr", Target: "/usr",
				Access: plan.ReadOnly},
			{Kind: plan.Symlink, Target: "/lib", Source: "usr/lib"}, {Kind: plan.Symlink, Target: "/lib64",
				Source: "usr/lib64"}, {Kind: plan.Symlink, Target: "/bin", Source: "usr/bin"},
			{Kind: plan.Dir, Target: "/dev", Mode: 0o755}, {Kind: plan.File, Target: "/dev/null", Mode: 0o666},
			{Kind: plan.Bind, Source: "/dev/null", Target: "/dev/null", Access: plan.ReadWrite, Device: true},
			{Kind: plan.Dir, Target: "/proc", Mode: 0o555}, {Kind: plan.Proc, Target: "/proc"},
			{Kind: plan.Dir, Target: "/tmp", Mode: 0o755}, {Kind: plan.Tmpfs, Target: "/tmp", Size: 1 << 20, Inodes: 1000,
				Mode: 0o777, Access: plan.ReadWrite},
		},
		Seccomp: plan.Seccomp{Rules: "test", Program: w.prog, Notify: true},
		Process: plan.Process{Path: plan.Bytes(argv[0]), Dir: "/tmp", Env: []plan.Bytes{"A=b", "SBX_GUEST=" +
			plan.Bytes(guestName), "W=" + plan.Bytes(w.dir)}, Umask: 0o22},
		Stdio: [3]plan.Stdio{plan.Null, plan.Inherit, plan.Inherit},
		Fds:   []plan.FdRole{plan.FdSeccomp},
	}
	at := ""
	for _, c := range strings.Split(strings.Trim(w.dir, "/"), "/") {
		at += "/" + c
		p.Mounts = append(p.Mounts, plan.Mount{Kind: plan.Dir, Target: at, Mode: 0o755})
	}
	if w.agent {
		p.Fds = append(p.Fds, plan.FdUserNS, plan.FdMountNS)
	}
	for _, d := range []struct {
		name string
		a    plan.Access
	}{{"ro", plan.ReadOnly}, {"rw", plan.ReadWrite}, {"bin", plan.ReadOnly}} {
		at := w.path(d.name)
		p.Mounts = append(p.Mounts, plan.Mount{Kind: plan.Dir, Target: at, Mode: 0o755}, plan.Mount{Kind: plan.Bind,
			Source: at, Target: at, Access: d.a})
	}
	p.Mounts = append(p.Mounts, plan.Mount{Kind: plan.Remount, Target: "/", Access: plan.ReadOnly})
	for _, a := range argv {
		p.Process.Argv = append(p.Process.Argv, plan.Bytes(a))
	}
	return p
}

func compiled(t *testing.T, p seccompbpf.Policy) []plan.Insn {
	t.Helper()
	prog, err := seccompbpf.Compile(p)
	if err != nil {
		t.Fatal(err)
	}
	out := make([]plan.Insn, len(prog))
	for i, in := range prog {
		out[i] = plan.Insn(in)
	}
	return out
}

func native() seccompbpf.Arch {
	if runtime.GOARCH == "arm64" {
		return seccompbpf.ARM64
	}
	return seccompbpf.AMD64
}

// guest runs one of the functions of guest_test.go inside.
func (w *world) guest(name string, args ...string) string {
	w.t.Helper()
	out, code := w.run(name, append([]string{w.self}, args...)...)
	if code != 0 {
		w.t.Fatalf("guest %s: exit %d\n%s%+v", name, code, out, w.notes)
	}
	return out
}

// run runs a program inside until it ends.
func (w *world) run(guestName string, argv ...string) (string, int) {
	t := w.t
	t.Helper()
	if w.prog == nil {
		w.prog = compiled(t, seccompbpf.Default(native(), w.tog))
	}
	p := w.plan(guestName, argv)
	if err := p.Validate(); err != nil {
		t.Fatal(err)
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	out, err := os.Create(w.path("out"))
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	fd := int(out.Fd())
	c, err := child.Start(p, stage.Stdio{-1, fd, fd}, child.Hooks{})
	if err != nil {
		need.Fact(t, false, "%s", "user namespaces: "+err.Error())
	}
	w.pid = c.PID
	o := w.opt
	o.Listener = c.Fds[plan.FdSeccomp]
	w.listener = int(o.Listener.Fd())
	if w.agent {
		a := agent{w, mounter.New(c.Fds[plan.FdUserNS], c.Fds[plan.FdMountNS]), new(atomic.Bool), new(sync.Map)}
		delete(c.Fds, plan.FdUserNS)
		delete(c.Fds, plan.FdMountNS)
		defer a.a.Close()
		o.Grafter, o.Opener = a, a
	}
	ask := o.Ask
	if ask != nil {
		o.Ask = func(ctx context.Context, a Ask) Answer {
			w.mu.Lock()
			w.asks = append(w.asks, a)
			w.mu.Unlock()
			return ask(ctx, a)
		}
	}
	o.Log = func(n Note) {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.notes = append(w.notes, n)
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	served := make(chan error, 1)
	go func() { served <- Serve(ctx, o) }()
	timer := time.AfterFunc(120*time.Second, c.SendKill)
	defer timer.Stop()
	ev, err := c.Next()
	if err != nil {
		b, _ := os.ReadFile(out.Name())
		t.Fatalf("next: %v %v notes %+v\n%s", err, c.StartFault(), w.notes, b)
	}
	c.Kill()
	select {
	case err := <-served:
		if err != nil {
			t.Errorf("serve: %v", err)
		}
	case <-time.After(time.Minute):
		t.Error("Serve goes on although the sandbox is gone")
	}
	c.Close()
	b, _ := os.ReadFile(out.Name())
	return string(b), ev.Status.ExitStatus()
}

func (w *world) asked(op, p string) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	n := 0
	for _, a := range w.asks {
		if a.Op == op && a.Path == w.path(p) {
			n++
		}
	}
	return n
}

// want compares output line by line; W stands for the world's directory.
func (w *world) want(out string, lines ...string) {
	w.t.Helper()
	got := strings.Split(strings.TrimSuffix(strings.ReplaceAll(out, w.dir, "W"), "\n"), "\n")
	for i := range max(len(got), len(lines)) {
		var g, l string
		if i < len(got) {
			g = got[i]
		}
		if i < len(lines) {
			l = lines[i]
		}
		if g != l {
			w.t.Errorf("line %d: got %q, want %q", i, g, l)
		}
	}
	if w.t.Failed() {
		w.t.Logf("asks %+v\nnotes %+v", w.asks, w.notes)
	}
}

// TestAsOrdinaryUser repeats everything with the rights that a broker usually has.
func TestAsOrdinaryUser(t *testing.T) {
	need.Root(t, "to become an ordinary user")
	dir, err := os.MkdirTemp("/var/tmp", "sbx-notify-user-")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	os.Chmod(dir, 0o777|os.ModeSticky)
	self, _ := os.Executable()
	b, err := os.ReadFile(self)
	if err != nil {
		t.Fatal(err)
	}
	bin := filepath.Join(dir, "notify.test")
	if err := os.WriteFile(bin, b, 0o755); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(bin, "-test.v", "-test.timeout=300s")
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "TMPDIR="+dir, "HOME="+dir)
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 4242, Gid: 4242}, Pdeathsig: unix.SIGKILL}
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err = cmd.Run()
	for line := range strings.Lines(out.String()) { // what failed stands first in a report: what passed is left out
		if line = strings.TrimSpace(line); !strings.HasPrefix(line, "=== ") && !strings.HasPrefix(line, "--- PASS") {
			t.Log(line)
		}
	}
	if err != nil {
		t.Fatal(err)
	}
}

package stage

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"sbx/shared/plan"
)

// smallest is a plan that runs a program on a read-only /usr with the given arguments.
func smallest(argv ...string) *plan.Plan {
	p := &plan.Plan{Version: plan.Version, Session: "t", Hostname: "sbx-t", Loopback: true,
		Namespaces: plan.Namespaces{User: true, Net: true, IPC: true, UTS: true, Cgroup: true},
		Identity:   plan.Identity{InsideUID: uint32(os.Getuid()), OutsideUID: uint32(os.Getuid()), InsideGID: uint32(os.Getgid()), OutsideGID: uint32(os.Getgid())},
		Mounts: []plan.Mount{
			{Kind: plan.Tmpfs, Target: "/", Size: 1 << 20, Inodes: 1000, Mode: 0o755},
			{Kind: plan.Dir, Target: "/usr", Mode: 0o755}, {Kind: plan.Bind, Source: "/usr", Target: "/usr", Access: plan.ReadOnly},
			{Kind: plan.Symlink, Target: "/lib", Source: "usr/lib"}, {Kind: plan.Symlink, Target: "/lib64", Source: "usr/lib64"}, {Kind: plan.Symlink, Target: "/bin", Source: "usr/bin"},
			{Kind: plan.Dir, Target: "/dev", Mode: 0o755}, {Kind: plan.File, Target: "/dev/null", Mode: 0o666}, {Kind: plan.Bind, Source: "/dev/null", Target: "/dev/null", Access: plan.ReadWrite, Device: true},
			{Kind: plan.Dir, Target: "/proc", Mode: 0o555}, {Kind: plan.Proc, Target: "/proc"},
			{Kind: plan.Remount, Target: "/", Access: plan.ReadOnly},
		},
		Seccomp: plan.Seccomp{Rules: "allow", Program: []plan.Insn{{Code: 6, K: 0x7fff0000}}},
		Process: plan.Process{Path: plan.Bytes(argv[0]), Dir: "/", Env: []plan.Bytes{"A=b"}, Umask: 0o22},
		Stdio:   [3]plan.Stdio{plan.Null, plan.Inherit, plan.Inherit},
	}
	for _, a := range argv {
		p.Process.Argv = append(p.Process.Argv, plan.Bytes(a))
	}
	return p
}

// run carries p out and returns what the program wrote and its exit status.
func run(t *testing.T, p *plan.Plan) (string, int) {
	t.Helper()
	if err := p.Validate(); err != nil {
		t.Fatal(err)
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	f, err := os.Create(filepath.Join(t.TempDir(), "out"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	fd := int(f.Fd())
	c, err := Start(p, Stdio{-1, fd, fd}, Hooks{})
	if err != nil {
		t.Fatalf("start: %v", err)
	}
	defer c.Close()
	defer c.Kill()
	ev, err := c.Next()
	if err != nil {
		t.Fatalf("next: %v", err)
	}
	b, _ := os.ReadFile(f.Name())
	return string(b), ev.Status.ExitStatus()
}

func TestRunsAndReports(t *testing.T) {
	out, code := run(t, smallest("/usr/bin/sh", "-c", "echo $$ $A; hostname; ls /; exit 7"))
	if code != 7 || !strings.HasPrefix(out, "2 b\nsbx-t\n") || !strings.Contains(out, "lib64") {
		t.Fatalf("exit %d, output %q", code, out)
	}
}

func TestLeavesNoPrivilege(t *testing.T) {
	out, _ := run(t, smallest("/usr/bin/grep", "-E", "^(Cap|NoNewPrivs|Seccomp:|Sig)", "/proc/self/status"))
	for _, want := range []string{"CapInh:\t0000000000000000", "CapPrm:\t0000000000000000", "CapEff:\t0000000000000000", "CapBnd:\t0000000000000000", "CapAmb:\t0000000000000000", "NoNewPrivs:\t1", "Seccomp:\t2", "SigBlk:\t0000000000000000"} {
		if !strings.Contains(out, want) {
			t.Errorf("%q missing in\n%s", want, out)
		}
	}
}

func TestFaultNamesStep(t *testing.T) {
	p := smallest("/usr/bin/true")
	p.Mounts[2].Source = "/no-such-place"
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	_, err := Start(p, Stdio{-1, 1, 2}, Hooks{})
	f, ok := err.(*Fault)
	if !ok || f.Errno != unix.ENOENT || f.Object != "/usr" || f.Step != "mounting bind" {
		t.Fatalf("fault %#v", err)
	}
}

func TestRefusesSwappedSource(t *testing.T) {
	p := smallest("/usr/bin/true")
	p.Mounts[2].Dev, p.Mounts[2].Ino = 1, 1
	_, err := Start(p, Stdio{-1, 1, 2}, Hooks{})
	if f, ok := err.(*Fault); !ok || f.Errno != unix.ESTALE {
		t.Fatalf("got %v, want ESTALE", err)
	}
}

func TestExecFaultIsTheProgramsOwn(t *testing.T) {
	p := smallest("/usr/bin/no-such-program")
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	c, err := Start(p, Stdio{-1, 1, 2}, Hooks{})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	defer c.Kill()
	_, err = c.Next()
	if f := c.StartFault(); err == nil || f == nil || !f.IsExec() || f.Errno != unix.ENOENT {
		t.Fatalf("got %v, %v", err, f)
	}
}

func TestInitNobodyWantsEndsWithItsParent(t *testing.T) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	e, err := prepare(smallest("/usr/bin/true").Namespaces, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	unix.Close(e.sock) // what the kernel does with a parent's
	deadline := time.Now().Add(20 * time.Second)
	for {
		if pid, err := syscall.Wait4(e.pid, nil, syscall.WNOHANG, nil); pid == e.pid || err != nil && err != syscall.EINTR {
			return
		}
		if time.Now().After(deadline) {
			e.End()
			t.Fatal("process 1 lives on without a parent")
		}
		time.Sleep(time.Millisecond)
	}
}

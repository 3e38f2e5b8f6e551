//go:build linux

package child

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"sbx.example/sbx/broker/internal/steps"
	"sbx.example/sbx/broker/plan"
	"sbx.example/sbx/selftest/plans"
	"sbx.example/sbx/shared/stage"
)

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
	c, err := Start(p, stage.Stdio{-1, fd, fd}, Hooks{})
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
	out, code := run(t, plans.Smallest("/usr/bin/sh", "-c", "echo $$ $A; hostname; ls /; exit 7"))
	if code != 7 || !strings.HasPrefix(out, "2 b\nsbx-t\n") || !strings.Contains(out, "lib64") {
		t.Fatalf("exit %d, output %q", code, out)
	}
}

func TestLeavesNoPrivilege(t *testing.T) {
	out, _ := run(t, plans.Smallest("/usr/bin/grep", "-E", "^(Cap|NoNewPrivs|Seccomp:|Sig)", "/proc/self/status"))
	for _, want := range []string{"CapInh:\t0000000000000000", "CapPrm:\t0000000000000000", "CapEff:\t0000000000000000",
		"CapBnd:\t0000000000000000", "CapAmb:\t0000000000000000", "NoNewPrivs:\t1", "Seccomp:\t2",
		"SigBlk:\t0000000000000000"} {
		if !strings.Contains(out, want) {
			t.Errorf("%q missing in\n%s", want, out)
		}
	}
}

func TestFaultNamesStep(t *testing.T) {
	p := plans.Smallest("/usr/bin/true")
	p.Mounts[2].Source = "/no-such-place"
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	_, err := Start(p, stage.Stdio{-1, 1, 2}, Hooks{})
	f, ok := err.(*steps.Fault)
	if !ok || f.Errno != unix.ENOENT || f.Object != "/usr" || f.Step != "mounting bind" {
		t.Fatalf("fault %#v", err)
	}
}

func TestRefusesSwappedSource(t *testing.T) {
	p := plans.Smallest("/usr/bin/true")
	p.Mounts[2].Dev, p.Mounts[2].Ino = 1, 1
	_, err := Start(p, stage.Stdio{-1, 1, 2}, Hooks{})
	if f, ok := err.(*steps.Fault); !ok || f.Errno != unix.ESTALE {
		t.Fatalf("got %v, want ESTALE", err)
	}
}

func TestExecFaultIsTheProgramsOwn(t *testing.T) {
	p := plans.Smallest("/usr/bin/no-such-program")
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	c, err := Start(p, stage.Stdio{-1, 1, 2}, Hooks{})
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
	e, err := PrepareFor(plans.Smallest("/usr/bin/true"))
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

//go:build linux

package child

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"sbx.example/sbx/selftest/plans"
	"sbx.example/sbx/shared/stage"
	"sbx.example/sbx/shared/tape"
)

// TestStartWaitsForNobody: process 1 starts the program under the filter, which hands over umask(2) where a project is
// guarded: the start would wait until the broker listens. So the set-up sets the mask, before it loads the filter.
func TestStartWaitsForNobody(t *testing.T) {
	start, setup, p := plans.NewTape(), plans.NewTape(), plans.Full()
	compileStart(start, p)
	if slices.ContainsFunc(start.Ops, func(o tape.Op) bool { return o.Nr == unix.SYS_UMASK }) {
		t.Error("the program's start calls umask, which the filter hands over")
	}
	if err := CompileSetup(setup, p, 9, stage.Stdio{-1, 1, 2}, Folder{}, nil); err != nil {
		t.Fatal(err)
	}
	mask := slices.IndexFunc(setup.Ops, func(o tape.Op) bool {
		return o.Nr == unix.SYS_UMASK && o.A[0] == uintptr(p.Process.Umask)
	})
	filter := slices.IndexFunc(setup.Ops, func(o tape.Op) bool { return o.Nr == unix.SYS_SECCOMP })
	if mask < 0 || filter < mask {
		t.Errorf("the set-up sets the mask as instruction %d and loads the filter as %d", mask, filter)
	}
}

// TestBuildBeside: the broker's own work is done beside the answers about a served root, for which process 1 waits.
func TestBuildBeside(t *testing.T) {
	failed := errors.New("no record")
	for _, root := range []*Root{nil, {}} {
		hold := make(chan struct{})
		if root == nil {
			close(hold)
		}
		c := &Child{root: root}
		built, err := c.build(Hooks{Building: func(*Child) error {
			<-hold
			return failed
		}})
		if root == nil {
			if err != failed {
				t.Errorf("not served: %v, want %v before anything else is done", err, failed)
			}
			continue
		}
		close(hold) // the hook is still running
		if err != nil || built() != failed {
			t.Errorf("served: %v, and then not %v", err, failed)
		}
	}
}

// TestProgramWaitsForBuilding: what is done beside process 1 comes before the program, however long it takes, and where
// it fails the program never runs.
func TestProgramWaitsForBuilding(t *testing.T) {
	failed := errors.New("no record")
	for _, want := range []error{failed, nil} {
		p := plans.Smallest("/usr/bin/echo", "RAN")
		out, err := os.Create(filepath.Join(t.TempDir(), "out"))
		if err != nil {
			t.Fatal(err)
		}
		defer out.Close()
		written := func() string {
			b, _ := os.ReadFile(out.Name())
			return string(b)
		}
		runtime.LockOSThread()
		fd := int(out.Fd())
		c, err := Start(p, stage.Stdio{-1, fd, fd}, Hooks{Building: func(c *Child) error {
			for !startSleeps(c.PID) && written() == "" { // nothing tells of another process's state: it is looked at
				time.Sleep(time.Millisecond)
			}
			return want
		}})
		if err != want {
			t.Fatalf("start: %v, want %v", err, want)
		}
		if want == nil {
			_, err = c.Next()
			c.Kill()
			c.Close()
		}
		if ran := written() != ""; err != nil && want == nil || ran != (want == nil) {
			t.Errorf("Building returned %v: the program wrote %q, %v", want, written(), err)
		}
		runtime.UnlockOSThread()
	}
}

// startSleeps says whether process 1 has a child that sleeps and is not the program yet.
func startSleeps(init int) bool {
	children, _ := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", init, init))
	for _, pid := range strings.Fields(string(children)) {
		stat, err := os.ReadFile("/proc/" + pid + "/stat")
		if _, state, _ := strings.Cut(string(stat), ") "); err == nil && strings.HasPrefix(state, "S") && !executed(stat) {
			return true
		}
	}
	return false
}

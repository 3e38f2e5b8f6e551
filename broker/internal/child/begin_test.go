//go:build linux

package child

import (
	"errors"
	"slices"
	"testing"

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

// TestBuildBeside: the broker's own work is done beside the answers about a served root only where process 1 waits for
// a word before it starts the program. Else the program could run before its record is written.
func TestBuildBeside(t *testing.T) {
	failed := errors.New("no record")
	for _, x := range []struct {
		name         string
		root         *Root
		waits, aside bool
	}{
		{"served, waits", &Root{}, true, true}, {"served, goes on", &Root{}, false, false}, {"not served", nil, true, false},
	} {
		hold := make(chan struct{})
		if !x.aside {
			close(hold)
		}
		c := &Child{root: x.root, waits: x.waits}
		built, err := c.build(Hooks{Building: func(*Child) error {
			<-hold
			return failed
		}})
		if x.aside {
			close(hold) // the hook is still running
			if err != nil || built() != failed {
				t.Errorf("%s: %v, and then not %v", x.name, err, failed)
			}
		} else if err != failed {
			t.Errorf("%s: %v, want %v before anything else is done", x.name, err, failed)
		}
	}
}

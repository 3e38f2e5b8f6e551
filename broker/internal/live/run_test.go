//go:build linux

package live

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"testing"

	"golang.org/x/sys/unix"

	"sbx.example/sbx/broker/internal/launch"
	"sbx.example/sbx/broker/internal/planner"
	"sbx.example/sbx/broker/internal/steps"
	"sbx.example/sbx/broker/plan"
)

// TestVanished: what has gone between the plan and its mount is planned anew. A program that is not there is not.
func TestVanished(t *testing.T) {
	t.Parallel()
	missing := &steps.Fault{Step: steps.ExecStep, Errno: unix.ENOENT}
	for err, want := range map[error]bool{
		&steps.Fault{Step: "opening", Errno: unix.ENOENT}:                           true,
		&steps.Fault{Step: "opening", Errno: unix.ESTALE}:                           true,
		fmt.Errorf("serving /p: opening guarded directory /p: %w", unix.ENOENT):     true,
		fmt.Errorf("serving /p: greeting the kernel on /dev/fuse: %w", unix.ENODEV): true,
		&steps.Fault{Step: "opening", Errno: unix.EACCES}:                           false,
		missing: false,
		&launch.ExecError{Path: "none", Err: missing}: false,
		errors.New("another"):                         false,
	} {
		if got := vanished(err); got != want {
			t.Errorf("%v: %v", err, got)
		}
	}
}

// TestLossesAreToldOnce: a run that is planned anew says what it said before no second time, and what is new.
func TestLossesAreToldOnce(t *testing.T) {
	var said []string
	null, err := os.Open(os.DevNull) // no terminal
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	b := &Broker{Std: [3]*os.File{null, null, null}, Warn: func(s string) { said = append(said, s) }}
	r := &run{}
	old, late := planner.Loss{What: "one"}, planner.Loss{What: "two"}
	b.announce(r, &plan.Plan{}, []planner.Loss{old})
	b.announce(r, &plan.Plan{}, []planner.Loss{late, old})
	if want := []string{old.String(), late.String()}; !slices.Equal(said, want) {
		t.Errorf("said %q, want %q", said, want)
	}
}

//go:build linux

package live

import (
	"errors"
	"fmt"
	"testing"

	"golang.org/x/sys/unix"

	"sbx.example/sbx/broker/internal/launch"
	"sbx.example/sbx/broker/internal/steps"
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

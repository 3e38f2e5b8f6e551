package launch

import (
	"context"
	"errors"
	"fmt"
	"syscall"
	"testing"

	"sbx/shared/stage"
)

func TestCaptureBoundsAndReports(t *testing.T) {
	j := Job{Path: "/bin/sh", Argv: []string{"sh", "-c", "cat; echo out; echo err >&2; head -c 100000 /dev/zero; exit 5"}, Env: []string{"PATH=/usr/bin:/bin"}}
	res, out, errs, err := Capture(context.Background(), Passthrough{}, j, 10)
	if err != nil || res.Status != 5 {
		t.Fatalf("status %d, error %v", res.Status, err)
	}
	if len(out) != 10 || string(out[:4]) != "out\n" || string(errs) != "err\n" {
		t.Errorf("output %q, errors %q", out, errs)
	}
}

func TestUnavailableKeepsTheFault(t *testing.T) {
	for _, c := range []struct {
		fault stage.Fault
		none  bool
	}{
		{stage.Fault{Step: "cloning", Errno: syscall.EPERM}, true},
		{stage.Fault{Step: "writing", Object: "/proc/self/uid_map", Errno: syscall.EPERM}, true},
		{stage.Fault{Step: "cloning", Errno: syscall.EAGAIN}, false},
		{stage.Fault{Step: "mounting bind", Object: "/x", Errno: syscall.EPERM}, false},
	} {
		if givesNone(&c.fault) != c.none {
			t.Errorf("%v: want %t", &c.fault, c.none)
		}
		err := fmt.Errorf("building sandbox: %w", &unavailable{&c.fault})
		var f *stage.Fault
		if !errors.Is(err, ErrUnavailable) || !errors.As(err, &f) || !errors.Is(err, c.fault.Errno) {
			t.Errorf("%v: lost what it was", err)
		}
	}
}

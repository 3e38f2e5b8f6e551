//go:build linux

package launch

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"sbx.example/sbx/broker/internal/steps"
)

func TestPassthrough(t *testing.T) {
	j := Job{Path: "/bin/sh", Argv: []string{"sh", "-c", "cat; echo out; echo err >&2; exit 5"},
		Env: []string{"PATH=/usr/bin:/bin"}}
	for i, flag := range []int{os.O_RDONLY, os.O_RDWR, os.O_RDWR} {
		name := os.DevNull
		if i > 0 {
			name = filepath.Join(t.TempDir(), "out")
		}
		f, err := os.OpenFile(name, flag|os.O_CREATE, 0o600)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		j.Stdio[i] = f
	}
	res, err := Passthrough{}.Execute(context.Background(), j)
	if err != nil || res.Status != 5 {
		t.Fatalf("status %d, error %v", res.Status, err)
	}
	for i, want := range map[int]string{1: "out\n", 2: "err\n"} {
		if got, err := os.ReadFile(j.Stdio[i].Name()); err != nil || string(got) != want {
			t.Errorf("descriptor %d: %q %v, want %q", i, got, err, want)
		}
	}
}

func TestUnavailableKeepsTheFault(t *testing.T) {
	for _, c := range []struct {
		fault steps.Fault
		none  bool
	}{
		{steps.Fault{Step: "cloning", Errno: syscall.EPERM}, true},
		{steps.Fault{Step: "writing", Object: "/proc/self/uid_map", Errno: syscall.EPERM}, true},
		{steps.Fault{Step: "setting host name", Object: "sbx-x", Errno: syscall.EPERM}, true},
		{steps.Fault{Step: "mounting proc", Object: "/proc", Errno: syscall.EPERM}, true},
		{steps.Fault{Step: "mounting proc", Object: "/proc", Errno: syscall.ENOMEM}, false},
		{steps.Fault{Step: "cloning", Errno: syscall.EAGAIN}, false},
		{steps.Fault{Step: "mounting bind", Object: "/x", Errno: syscall.EPERM}, false},
	} {
		if givesNone(&c.fault) != c.none {
			t.Errorf("%v: want %t", &c.fault, c.none)
		}
		err := fmt.Errorf("building sandbox: %w", &unavailable{&c.fault})
		var f *steps.Fault
		if !errors.Is(err, ErrUnavailable) || !errors.As(err, &f) || !errors.Is(err, c.fault.Errno) {
			t.Errorf("%v: lost what it was", err)
		}
	}
}

//go:build linux

package hint

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"

	"sbx.example/sbx/broker/internal/host"
	"sbx.example/sbx/broker/internal/launch"
	"sbx.example/sbx/broker/internal/option"
	"sbx.example/sbx/broker/internal/planner"
	"sbx.example/sbx/broker/internal/steps"
)

// TestOf: what a person is told to do about each kind of error, however it is wrapped.
func TestOf(t *testing.T) {
	there := t.TempDir() + "/program"
	if err := os.WriteFile(there, nil, 0o755); err != nil {
		t.Fatal(err)
	}
	fault := func(step string, errno syscall.Errno) error { return &steps.Fault{Step: step, Errno: errno} }
	const none = "\x00"
	for name, x := range map[string]struct {
		err  error
		want string // a part of the hint; none: there is none
	}{
		"nothing is known":         {errors.New("x"), none},
		"a mistake":                {option.Wrong("x", "say y"), "say y"},
		"a refusal":                {&planner.Refusal{What: "x", Hint: "do y"}, "do y"},
		"too few files":            {&planner.Refusal{What: "x", Err: syscall.EMFILE, Hint: "do y"}, "ulimit -n"},
		"no namespaces":            {fault("cloning", syscall.EPERM), host.UserNamespaceHint()},
		"namespaces used up":       {fault("cloning", syscall.ENOSPC), host.UserNamespaceHint()},
		"maps refused":             {fault("writing uid_map", syscall.EPERM), host.UserNamespaceHint()},
		"too many processes":       {fault("starting a process", syscall.EAGAIN), "RLIMIT_NPROC"},
		"replaced":                 {fault("opening", syscall.ESTALE), "try again"},
		"no terminal":              {fault("opening terminal", syscall.ENOSPC), "close some terminals"},
		"another fault":            {fault("mounting", syscall.EINVAL), none},
		"no such name":             {&planner.Missing{Name: "nosuch", Status: 127}, "no directory in PATH"},
		"no such path":             {&planner.Missing{Name: "./nosuch", Status: 127}, "name a program that exists"},
		"not executable":           {&planner.Missing{Name: "./file", Status: 126}, "chmod +x"},
		"there, but not inside":    {&launch.ExecError{Path: there, Status: 127, Err: syscall.ENOENT}, "--ro " + there},
		"nowhere":                  {&launch.ExecError{Path: there + "x", Status: 127, Err: syscall.ENOENT}, none},
		"a mistake that is deeper": {fmt.Errorf("in a file: %w", option.Wrong("x", "say y")), "say y"},
	} {
		got := Of(x.err)
		if x.want == none && got != "" || x.want != none && !strings.Contains(got, x.want) {
			t.Errorf("%s: %q, want %q", name, got, x.want)
		}
		if got := Of(fmt.Errorf("around: %w", x.err)); x.want != none && !strings.Contains(got, x.want) {
			t.Errorf("%s, wrapped: %q", name, got)
		}
	}
}

// TestStatus: scripts tell from the status whether the program could not be found, could not be run, or sbx not begin.
func TestStatus(t *testing.T) {
	for want, err := range map[int]error{
		127: &planner.Missing{Name: "x", Status: 127},
		126: fmt.Errorf("around: %w", &launch.ExecError{Path: "/x", Status: 126, Err: syscall.EACCES}),
		125: &planner.Refusal{What: "x", Err: syscall.ENOENT},
	} {
		if got := Status(err); got != want {
			t.Errorf("%v: %d, want %d", err, got, want)
		}
	}
}

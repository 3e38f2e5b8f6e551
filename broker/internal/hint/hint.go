package hint

import (
	"errors"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"sbx.example/sbx/broker/internal/host"
	"sbx.example/sbx/broker/internal/launch"
	"sbx.example/sbx/broker/internal/option"
	"sbx.example/sbx/broker/internal/planner"
	"sbx.example/sbx/broker/internal/quoting"
	"sbx.example/sbx/broker/plan"
)

// couldNotBegin is the status of what could not begin.
const couldNotBegin = 125

// Status is what sbx run exits with because of err.
func Status(err error) int {
	var m *planner.Missing
	if errors.As(err, &m) {
		return m.Status
	}
	var x *launch.ExecError
	if errors.As(err, &x) {
		return x.Status
	}
	return couldNotBegin
}

const fewFiles = "the limit on open files is too small; ulimit -n 64 is enough"

// Of says what to do about err.
func Of(err error) string {
	if errors.Is(err, syscall.EMFILE) {
		return fewFiles
	}
	var u *option.Mistake
	if errors.As(err, &u) {
		return u.Hint
	}
	var r *planner.Refusal
	if errors.As(err, &r) {
		return r.Hint
	}
	var m *planner.Missing
	if errors.As(err, &m) {
		return missingHint(m)
	}
	var x *launch.ExecError
	if errors.As(err, &x) && refusedInside(x) {
		return plan.Bytes(x.Path).Quote() + " exists on the host and is not granted in the sandbox; grant it with --ro " +
			quoting.Place(x.Path)
	}
	return ofFault(err)
}

func missingHint(m *planner.Missing) string {
	switch {
	case m.Status == 126:
		return "it is a directory, or a file without execute permission (chmod +x)"
	case strings.Contains(m.Name, "/"):
		return "name a program that exists"
	}
	return "no directory in PATH has a program of that name"
}

// refusedInside says whether a program could be started outside.
func refusedInside(x *launch.ExecError) bool {
	return x.Status == 127 && host.Exists(x.Path) || errors.Is(x.Err, syscall.EACCES) &&
		unix.Access(x.Path, unix.X_OK) == nil
}

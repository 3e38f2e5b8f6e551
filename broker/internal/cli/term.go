package cli

// What sbx prints, house rules: messages go to standard error, start with "sbx: ", lower case, no full
// stop; a second line "hint: " says what to do. Standard output is the program's, or the answer to a
// question (--json, --dry-run). Text that comes from a program or file is quoted to ASCII.

import (
	"context"
	"errors"
	"os"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"sbx/broker/internal/host"
	"sbx/broker/internal/launch"
	"sbx/broker/internal/planner"
	"sbx/shared/plan"
	"sbx/shared/stage"
)

// term is where the words go.
type term struct {
	env []string
	std [3]*os.File

	early *stage.Early // process 1, cloned when this process started; nil in most commands
	// signals is what launch.AsStarted has returned; nil in most commands
	signals func()
	// messages is where a detached broker speaks to, whose program has other descriptors; or nil.
	messages *os.File

	// Of an embedded run: whose it is, and what came of it.
	host    context.Context //nolint:containedctx
	failure *Failure
	result  launch.Result
}

func quote(s string) string { return plan.Bytes(s).Quote() }

func (t *term) print(s string) { _, _ = t.std[1].WriteString(s) }

func (t *term) note(s string) {
	if t.messages != nil {
		_, _ = t.messages.WriteString(s)
		return
	}
	_, _ = t.std[2].WriteString(s)
}

func (t *term) warn(s string) { t.note("sbx: " + s + "\n") }

// fail prints err with its hint and returns the exit status.
func (t *term) fail(err error) int {
	status := t.say(err)
	t.failure = &Failure{Err: err, Hint: hint(err), Status: status}
	return status
}

func (t *term) say(err error) int {
	t.warn(err.Error())
	if h := hint(err); h != "" {
		t.note("hint: " + h + "\n")
	}
	var m *planner.Missing
	if errors.As(err, &m) {
		return m.Status
	}
	var x *launch.ExecError
	if errors.As(err, &x) {
		return x.Status
	}
	return exitUsage
}

const fewFiles = "the limit on open files is too small; ulimit -n 64 is enough"

// hint says what to do about err.
func hint(err error) string {
	if errors.Is(err, syscall.EMFILE) {
		return fewFiles
	}
	var u *usageError
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
		return quote(x.Path) + " exists on the host and is not granted in the sandbox; grant it with --ro " + quote(x.Path)
	}
	var f *stage.Fault
	if errors.As(err, &f) {
		return faultHint(f)
	}
	return ""
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
	return x.Status == 127 && exists(x.Path) || errors.Is(x.Err, syscall.EACCES) && unix.Access(x.Path, unix.X_OK) == nil
}

func exists(p string) bool { _, err := os.Lstat(p); return err == nil }

// faultHint looks up what a failed step means to a person.
func faultHint(f *stage.Fault) string {
	switch {
	case f.Step == "cloning" && isErrno(f, "EPERM", "ENOSPC", "EUSERS"):
		return host.UserNamespaceHint()
	case (f.Step == "cloning" || f.Step == "starting a process") && isErrno(f, "EAGAIN"):
		return "the limit on processes (RLIMIT_NPROC) is reached; end some, or raise it"
	case strings.HasPrefix(f.Step, "writing") && isErrno(f, "EPERM", "EACCES"):
		return host.UserNamespaceHint()
	case isErrno(f, "EMFILE", "EBADF"):
		return fewFiles
	case isErrno(f, "ESTALE"):
		return "the path was replaced while the sandbox was being built; try again"
	case f.Step == "opening terminal":
		return "no pseudo-terminal is left; close some terminals or redirect input and output"
	}
	return ""
}

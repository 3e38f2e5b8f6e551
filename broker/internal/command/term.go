package command

import (
	"errors"
	"os"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"sbx/broker/internal/host"
	"sbx/broker/internal/launch"
	"sbx/broker/internal/option"
	"sbx/broker/internal/planner"
	"sbx/broker/internal/steps"
	"sbx/shared/plan"
)

// What sbx prints, house rules: messages go to standard error, start with "sbx: ", lower case, no full
// stop; a second line "hint: " says what to do. Standard output is the program's, or the answer to a
// question (--json, --dry-run). Text that comes from a program or file is quoted to ASCII.

// Term is where the words go, and whom they are for.
type Term struct {
	Env []string
	Std [3]*os.File
	// Messages is where a detached broker speaks to, whose program has other descriptors; or nil.
	Messages *os.File
	// Asked returns the connection on which the program of sbx exec was asked for before anything else, and what came on it and has to be
	// read; 0 if there is none. It may be nil.
	Asked func() (fd int, got []byte)
}

func quote(s string) string { return plan.Bytes(s).Quote() }

func (t *Term) Print(s string) { _, _ = t.Std[1].WriteString(s) }

func (t *Term) Note(s string) {
	if t.Messages != nil {
		_, _ = t.Messages.WriteString(s)
		return
	}
	_, _ = t.Std[2].WriteString(s)
}

func (t *Term) Warn(s string) { t.Note("sbx: " + s + "\n") }

// Fail prints err with its hint and returns the exit status.
func (t *Term) Fail(err error) int {
	t.Warn(err.Error())
	if h := Hint(err); h != "" {
		t.Note("hint: " + h + "\n")
	}
	var m *planner.Missing
	if errors.As(err, &m) {
		return m.Status
	}
	var x *launch.ExecError
	if errors.As(err, &x) {
		return x.Status
	}
	return ExitUsage
}

const fewFiles = "the limit on open files is too small; ulimit -n 64 is enough"

// Hint says what to do about err.
func Hint(err error) string {
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
		return quote(x.Path) + " exists on the host and is not granted in the sandbox; grant it with --ro " + quote(x.Path)
	}
	var f *steps.Fault
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
	return x.Status == 127 && host.Exists(x.Path) || errors.Is(x.Err, syscall.EACCES) && unix.Access(x.Path, unix.X_OK) == nil
}

// faultHint looks up what a failed step means to a person.
func faultHint(f *steps.Fault) string {
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

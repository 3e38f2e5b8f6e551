package hint

import (
	"errors"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"sbx.example/sbx/broker/internal/host"
	"sbx.example/sbx/broker/internal/steps"
)

// ofFault is about a step in which a sandbox could not be built.
func ofFault(err error) string {
	var f *steps.Fault
	if errors.As(err, &f) {
		return faultHint(f)
	}
	return ""
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

func isErrno(f *steps.Fault, names ...string) bool {
	return slices.Contains(names, unix.ErrnoName(f.Errno))
}

//go:build linux

package live

import (
	"cmp"
	"errors"
	"syscall"

	"golang.org/x/sys/unix"

	"sbx.example/sbx/broker/internal/planner"
	"sbx.example/sbx/seccompbpf"
)

// inSandbox words a failure inside another sandbox for what it is. An inner session could only take more away from what
// the outer one shows, and the outer filter lets no namespace be made; so there is nothing to build.
func inSandbox(err error) error {
	if err != nil {
		err = cmp.Or(sealedIn(), err)
	}
	return err
}

// InSession says whether a session's filter holds this process. That filter answers for it, and is there before the
// session's program is: what a project can set, a variable above all, has no part in it.
func InSession() bool {
	_, e := unix.PrctlRetInt(seccompbpf.MarkOption, 0, 0, 0, 0)
	return errors.Is(e, syscall.Errno(seccompbpf.MarkErrno))
}

// sealedIn is that failure, nil where a sandbox can be built as far as that is seen here.
func sealedIn() error {
	if !InSession() || !errors.Is(unix.Unshare(unix.CLONE_NEWUSER), unix.EPERM) {
		return nil
	}
	return &planner.Refusal{What: "this process is in a sandbox already, which lets no further one be built", Err: nil,
		Hint: "run the command without sbx: it is confined as the outer session says, and nothing of SBX_* or of this " +
			"project's files can widen that; an outer sbx run --nested lets a further one be built"}
}

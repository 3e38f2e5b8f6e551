//go:build linux

package live

import (
	"cmp"
	"errors"

	"golang.org/x/sys/unix"

	"sbx.example/sbx/broker/internal/planner"
)

// inSandbox words a failure inside another sandbox for what it is. An inner session could only take more away from what
// the outer one shows, and the outer filter lets no namespace be made; so there is nothing to build.
func inSandbox(err error) error {
	if err != nil {
		err = cmp.Or(sealedIn(), err)
	}
	return err
}

// sealedIn is that failure, nil where a sandbox can be built as far as that is seen here.
func sealedIn() error {
	nnp, e := unix.PrctlRetInt(unix.PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0)
	if e != nil || nnp != 1 {
		return nil
	}
	// Neither errno is what a kernel with these calls answers to anybody else.
	fd, e := unix.Openat2(unix.AT_FDCWD, "/", &unix.OpenHow{Flags: unix.O_PATH | unix.O_CLOEXEC})
	if e == nil {
		unix.Close(fd)
	}
	if !errors.Is(e, unix.ENOSYS) || !errors.Is(unix.Unshare(unix.CLONE_NEWUSER), unix.EPERM) {
		return nil
	}
	return &planner.Refusal{What: "this process is in a sandbox already, which lets no further one be built", Err: nil,
		Hint: "run the command without sbx: it is confined as the outer session says, and nothing of SBX_* or of this " +
			"project's files can widen that; an outer sbx run --nested lets a further one be built"}
}

//go:build linux

package bwrap

import (
	"errors"
	"fmt"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"sbx.example/sbx/broker/internal/child"
	"sbx.example/sbx/broker/internal/steps"
	"sbx.example/sbx/broker/plan"
)

// words says in bubblewrap's words why a sandbox was not built. Callers look for some of them.
func words(err error, p *plan.Plan) error {
	var f *steps.Fault
	if !errors.As(err, &f) {
		return err
	}
	what, object := f.Step, f.Object
	switch what {
	case "cloning":
		return cloneFailed(f.Errno, p.Bubblewrap)
	case steps.ExecStep:
		return failErrno(f.Errno, "execvp %s", string(p.Process.Path))
	case child.StepEnter:
		return failErrno(f.Errno, "Can't chdir to %s", object)
	case child.StepFilter:
		return filterRefused(f.Errno)
	case child.StepCheckUser:
		return fail("creation of new user namespaces was not disabled as requested")
	case child.StepUserNS:
		return failErrno(f.Errno, "unshare user ns")
	case child.StepUserNS2:
		return failErrno(f.Errno, "Setting userns2 failed")
	case child.StepNoUserNS:
		return failErrno(f.Errno, "sysctl user.max_user_namespaces = 1")
	case child.StepNewSession:
		return failErrno(f.Errno, "setsid")
	case child.StepOpenLock:
		return failErrno(f.Errno, "Unable to open lock file %s", object)
	case child.StepLock:
		return failErrno(f.Errno, "Unable to lock file %s", object)
	case "setting host name":
		return failErrno(f.Errno, "Can't set hostname to %s", object)
	case "remounting":
		return failErrno(f.Errno, "Can't remount readonly on /newroot%s", object)
	}
	if kind, ok := strings.CutPrefix(what, "mounting "); ok {
		return mountFailed(plan.Kind(kind), object, f.Errno, p)
	}
	if strings.HasPrefix(what, "creating ") {
		return failErrno(f.Errno, "Can't create %s", object)
	}
	return failErrno(f.Errno, "%s", strings.TrimSpace(what+" "+object))
}

// mountFailed words a mount that the kernel has refused.
func mountFailed(kind plan.Kind, object string, errno syscall.Errno, p *plan.Plan) error {
	switch kind {
	case plan.ProcAll:
		return failErrno(errno, "Can't mount proc on /newroot%s", object)
	case plan.Tmpfs, plan.Devpts, plan.Mqueue:
		return failErrno(errno, "Can't mount %s on /newroot%s", kind, object)
	case plan.Overlay, plan.TmpOverlay:
		return failErrno(errno, "Can't make overlay mount on /newroot%s", object)
	case plan.PointDir:
		return failErrno(errno, "Can't mkdir %s", object)
	case plan.PointFile:
		return failErrno(errno, "Can't create file at %s", object)
	case plan.Data, plan.Copy:
		return failErrno(errno, "Can't write data to file %s", object)
	}
	var m plan.Mount
	for i := range p.Mounts {
		if p.Mounts[i].Target == object && p.Mounts[i].Kind == kind {
			m = p.Mounts[i]
		}
	}
	if kind == plan.Chmod {
		return failErrno(errno, "Can't chmod %s %s", fmt.Sprintf("%#o", m.Mode), object)
	}
	return failErrno(errno, "Can't bind mount /oldroot%s on /newroot%s", m.Source, object)
}

func cloneFailed(errno syscall.Errno, b *plan.Bubblewrap) error {
	switch {
	case b.UserNS >= 0 && errno == unix.EINVAL:
		return fail("Joining the specified user namespace failed, it might not be a descendant of the current user " +
			"namespace.")
	case b.UserNS >= 0 && (errno == unix.EBADF || errno == unix.EPERM):
		return failErrno(errno, "Joining specified user namespace failed")
	case b.PIDNS >= 0 && (errno == unix.EBADF || errno == unix.EPERM || errno == unix.EINVAL):
		return failErrno(errno, "Setting pidns failed")
	}
	switch errno {
	case unix.EINVAL:
		return fail("Creating new namespace failed, likely because the kernel does not support user namespaces.  " +
			"bwrap must be installed setuid on such systems.")
	case unix.EPERM:
		return fail("No permissions to create a new namespace, likely because the kernel does not allow " +
			"non-privileged user namespaces. On e.g. debian this can be enabled with " +
			"'sysctl kernel.unprivileged_userns_clone=1'.")
	case unix.ENOSPC:
		return fail("Creating new namespace failed: nesting depth or /proc/sys/user/max_*_namespaces exceeded (ENOSPC)")
	}
	return failErrno(errno, "Creating new namespace failed")
}

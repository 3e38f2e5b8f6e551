//go:build linux

package main

import (
	"os"
	"os/exec"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"
)

// The victim's marker call: getpgid with a number no pid can have, and the path as the second argument.
const markerPid = 0x7b5b5b5b

// victim is the traced child of ptraceRewrite: its marker call becomes an openat if the rewriting works.
func victim(args []string) outcome {
	r, err := raw(unix.SYS_GETPGID, markerPid, arg(args, 0))
	if name(err) == "ESRCH" {
		return outcome{Errno: none}
	}
	if err != nil {
		return stopped(err)
	}
	var t tally
	t.fd("rewritten", int(r))
	return t.outcome()
}

// ptraceChild is plain debugging of an own child: allowed by default, refused with --no-debug.
func ptraceChild(_ []string) outcome {
	cmd, err := traced("status")
	if err != nil {
		return stopped(err)
	}
	var ws unix.WaitStatus
	_, err = unix.Wait4(cmd.Process.Pid, &ws, 0, nil)
	_ = cmd.Process.Kill()
	_, _ = unix.Wait4(cmd.Process.Pid, nil, 0, nil)
	if err != nil || !ws.Stopped() {
		return outcome{Errno: "EPERM"}
	}
	return won("own child traced")
}

// traced starts a copy of the probe that asks to be traced and stops at its exec.
func traced(args ...string) (*exec.Cmd, error) {
	runtime.LockOSThread()
	cmd := exec.Command(self(), args...)
	cmd.Stderr = os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Ptrace: true}
	return cmd, cmd.Start()
}

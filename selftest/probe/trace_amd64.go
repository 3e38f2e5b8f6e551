//go:build linux

package main

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"syscall"

	"golang.org/x/sys/unix"
)

// ptraceRewrite turns an allowed call of an own child into openat after the filter has seen it. ptracerewrite PATH
func ptraceRewrite(args []string) outcome {
	r, w, err := os.Pipe()
	if err != nil {
		return skipped("ptracerewrite", err.Error())
	}
	defer r.Close()
	cmd := exec.Command(self(), "-host", "victim", arg(args, 0))
	cmd.Stdout = w
	cmd.SysProcAttr = &syscall.SysProcAttr{Ptrace: true}
	err = cmd.Start()
	w.Close()
	if err != nil {
		return stopped(err)
	}
	follow(cmd.Process.Pid)
	b := make([]byte, 4096)
	n, _ := r.Read(b)
	var o outcome
	if json.Unmarshal(bytes.TrimSpace(b[:n]), &o) != nil {
		return outcome{Errno: "DIED"}
	}
	return o
}

// follow steps the child from call to call until it ends, and rewrites the marker call.
func follow(pid int) {
	var ws unix.WaitStatus
	if _, err := unix.Wait4(pid, &ws, 0, nil); err != nil || !ws.Stopped() {
		return
	}
	_ = unix.PtraceSetOptions(pid, unix.PTRACE_O_TRACESYSGOOD|unix.PTRACE_O_EXITKILL)
	for sig := 0; ; {
		if unix.PtraceSyscall(pid, sig) != nil {
			return
		}
		if _, err := unix.Wait4(pid, &ws, 0, nil); err != nil || ws.Exited() || ws.Signaled() {
			return
		}
		sig = 0
		if s := ws.StopSignal(); s&0x80 == 0 {
			// An ordinary signal (Go's preemption): pass it on.
			sig = int(s)
			continue
		}
		var regs unix.PtraceRegs
		if unix.PtraceGetRegs(pid, &regs) == nil && regs.Orig_rax == unix.SYS_GETPGID && regs.Rdi == markerPid {
			regs.Orig_rax, regs.Rdi, regs.Rdx = unix.SYS_OPENAT, ^uint64(99), 0
			_ = unix.PtraceSetRegs(pid, &regs)
		}
	}
}

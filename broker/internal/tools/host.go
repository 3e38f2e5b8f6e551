//go:build linux

package tools

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"sbx.example/sbx/broker/internal/host"
)

// runOnHost runs a call in no sandbox: env is all that it has, its directory is reached without following a link.
func runOnHost(ctx context.Context, r *running, args, env []string) (int, error) {
	d, err := host.OpenPlain(r.call.Dir, unix.O_PATH|unix.O_DIRECTORY)
	if err != nil {
		return refused, fmt.Errorf("entering directory %s: %w", r.call.Dir, err)
	}
	defer unix.Close(d)
	cmd := r.tool.program.Command(args...)
	cmd.Env, cmd.Dir, cmd.Stdout, cmd.Stderr = env, "/proc/self/fd/"+strconv.Itoa(d), r.out, r.errs
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.WaitDelay = time.Second // for what still holds its output when it has ended
	if r.tool.Stdin {
		w, err := cmd.StdinPipe()
		if err != nil {
			return refused, err
		}
		go func() {
			_, _ = io.Copy(w, r.in)
			w.Close()
		}()
	}
	if err := cmd.Start(); err != nil {
		return refused, err
	}
	defer context.AfterFunc(ctx, func() { _ = unix.Kill(-cmd.Process.Pid, unix.SIGKILL) })()
	err = cmd.Wait()
	var failed *exec.ExitError
	switch {
	case errors.As(err, &failed) && failed.Sys().(syscall.WaitStatus).Signaled():
		return 128 + int(failed.Sys().(syscall.WaitStatus).Signal()), nil
	case errors.As(err, &failed):
		return failed.ExitCode(), nil
	case err != nil && !errors.Is(err, exec.ErrWaitDelay):
		return refused, err
	}
	return 0, nil
}

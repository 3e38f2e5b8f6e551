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

// onHost runs a call in no sandbox: env is all that it has, dir is reached without following a link.
func onHost(ctx context.Context, t Tool, args []string, dir string, env []string, x *streams, out, errs output) (int,
	error) {
	d, err := host.OpenPlain(dir, unix.O_PATH|unix.O_DIRECTORY)
	if err != nil {
		return refused, fmt.Errorf("entering directory %s: %w", dir, err)
	}
	defer unix.Close(d)
	cmd := t.program.Command(args...)
	cmd.Env, cmd.Dir, cmd.Stdout, cmd.Stderr = env, "/proc/self/fd/"+strconv.Itoa(d), out, errs
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.WaitDelay = time.Second // for what still holds its output when it has ended
	if t.Stdin {
		w, err := cmd.StdinPipe()
		if err != nil {
			return refused, err
		}
		go func() {
			_, _ = io.Copy(w, x)
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

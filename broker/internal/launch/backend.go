package launch

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"
	"time"

	"sbx/shared/plan"
	"sbx/shared/stage"
)

// Job is what a backend carries out. A sandboxing backend takes everything from Plan; the others, which
// have none, take Path, Argv and Env.
type Job struct {
	Plan *plan.Plan
	Path string
	Argv []string
	Env  []string
	Options
}

// Backend is one way of running a job.
type Backend interface {
	Name() string
	// Available says why the backend cannot be used here, or nil.
	Available() error
	// Execute runs the job to its end. See Run for the errors.
	Execute(ctx context.Context, j Job) (Result, error)
}

// ErrUnavailable is wrapped by errors that mean that this host has no sandbox to offer at all.
var ErrUnavailable = errors.New("no sandbox can be built on this host")

// Native builds the sandbox with the kernel's own means, without privilege.
type Native struct{}

// Name implements Backend.
func (Native) Name() string { return "native" }

// Available implements Backend. Only building one shows whether a sandbox can be built; what can be seen
// beforehand is that there are no namespaces to be had.
func (Native) Available() error {
	if _, err := os.Lstat("/proc/self/ns/user"); err != nil {
		return fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	return nil
}

// Execute implements Backend.
func (Native) Execute(ctx context.Context, j Job) (Result, error) {
	res, err := Run(ctx, j.Plan, j.Options)
	return res, Unavailable(err)
}

// Unavailable adds to err what it means if it is a fault that no sandbox of this host's escapes.
func Unavailable(err error) error {
	var f *stage.Fault
	if errors.As(err, &f) && givesNone(f) {
		return &unavailable{err}
	}
	return err
}

// givesNone says whether the fault means that this host gives no sandbox at all: no namespaces, or no
// identity in them.
func givesNone(f *stage.Fault) bool {
	// AppArmor's restriction gives a namespace, and nothing in it: the first thing that fails is a mount.
	if f.IsExec() || f.Step != "cloning" && f.Step != "making mounts private" && !strings.HasPrefix(f.Object, "/proc/self/") {
		return false
	}
	switch f.Errno {
	case syscall.EPERM, syscall.EACCES, syscall.ENOSPC, syscall.EUSERS, syscall.EINVAL, syscall.ENOSYS:
		return true
	}
	return false
}

// unavailable keeps the words of the fault and adds what it means.
type unavailable struct{ error }

func (u *unavailable) Unwrap() []error { return []error{u.error, ErrUnavailable} }

// Passthrough runs the job on the host, without any sandbox.
type Passthrough struct{}

// Name implements Backend.
func (Passthrough) Name() string { return "passthrough" }

// Available implements Backend.
func (Passthrough) Available() error { return nil }

// Execute implements Backend.
func (Passthrough) Execute(ctx context.Context, j Job) (Result, error) {
	begin := time.Now()
	files := make([]*os.File, 3)
	copy(files, j.Stdio[:])
	p, err := os.StartProcess(j.Path, j.Argv, &os.ProcAttr{Env: j.Env, Files: files})
	if err != nil {
		return Result{}, &ExecError{Status: 126, Path: j.Path, Err: err}
	}
	if !j.Stays {
		stop, err := forwardTo(p)
		if err != nil {
			_ = p.Kill()
			_, _ = p.Wait()
			return Result{}, err
		}
		defer stop()
	}
	expired := false
	if j.Timeout > 0 {
		t := time.AfterFunc(j.Timeout, func() { expired = true; _ = p.Kill() })
		defer t.Stop()
	}
	defer context.AfterFunc(ctx, func() { _ = p.Kill() })()
	st, err := p.Wait()
	if err != nil {
		return Result{}, fmt.Errorf("waiting for %s: %w", j.Path, err)
	}
	res := resultOf(st.Sys().(syscall.WaitStatus))
	if expired {
		res = Result{Status: 124, TimedOut: true}
	}
	res.Duration = time.Since(begin)
	return res, ctx.Err()
}

// forwardTo passes this process's signals on to p.
func forwardTo(p *os.Process) (stop func(), err error) {
	fd, release, err := catch(forwarded[:])
	if err != nil {
		return nil, err
	}
	go eachCaught(fd, func(s syscall.Signal) { _ = p.Signal(s) })
	return release, nil
}

// Capture runs the job with nothing on its standard input and returns what it wrote, for programs that
// embed sbx. At most limit bytes of each stream are kept; the rest is read and dropped.
func Capture(ctx context.Context, b Backend, j Job, limit int) (res Result, stdout, stderr []byte, err error) {
	null, err := os.Open(os.DevNull)
	if err != nil {
		return res, nil, nil, err
	}
	defer null.Close()
	j.Stdio[0] = null
	var out [2]bytes.Buffer
	var done [2]chan struct{}
	var ends [2]*os.File
	for i := range out {
		r, w, err := os.Pipe()
		if err != nil {
			return res, nil, nil, fmt.Errorf("making a pipe: %w", err)
		}
		j.Stdio[i+1], ends[i], done[i] = w, w, make(chan struct{})
		go func() {
			defer close(done[i])
			defer r.Close()
			_, _ = out[i].ReadFrom(&bounded{r, limit})
		}()
	}
	res, err = b.Execute(ctx, j)
	for i := range ends {
		ends[i].Close()
		<-done[i]
	}
	return res, out[0].Bytes(), out[1].Bytes(), err
}

// bounded reads everything and passes the first left bytes on.
type bounded struct {
	r    *os.File
	left int
}

func (b *bounded) Read(p []byte) (int, error) {
	for {
		n, err := b.r.Read(p)
		if err != nil {
			return 0, err
		}
		if n = min(n, b.left); n > 0 {
			b.left -= n
			return n, nil
		}
	}
}

//go:build linux

package launch

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"

	"sbx.example/sbx/broker/internal/child"
	"sbx.example/sbx/broker/plan"
)

// Exec is a further program for a running sandbox. Those that wait for it are called from the goroutine
// that waits for the sandbox, and must not wait themselves.
type Exec struct {
	Argv []string
	Env  []string // added to the environment of the sandbox's first program; the last of a name counts
	Dir  string   // empty: where the first program started
	// NoLinks has no link on the way to Dir followed
	NoLinks bool
	// Files become descriptors 0, 1 and 2, and nil is the null device; see handover.Check. They may be closed
	// when Exec has returned. With TTY the program gets a terminal of the sandbox's instead.
	Files [3]*os.File
	// Third has the third file executed, with an environment of nothing, and not what Argv names.
	Third      bool
	TTY        bool
	Rows, Cols uint16

	// Started is for a program that is not over at once; pid is as seen inside, and the program's process group.
	Started func(pid int)
	Pty     func(*os.File)       // master of the terminal, which is the callee's; before or after Started
	Stopped func(syscall.Signal) // by job control
	// once, if Exec had no error, with the pid, 0 if there was none; the error is an *ExecError, a *steps.Fault or the
	// sandbox's end
	Exited func(int, Result, error)
}

// Exec starts another program. It returns before the program has started.
func (r *Running) Exec(e Exec) error {
	p := &r.Plan.Process
	if r.frozen.Load() {
		return errors.New("the session is frozen: thaw it first")
	}
	s := child.Spawn{Argv: e.Argv, Env: mergeEnv(p.Env, e.Env), Dir: e.Dir, NoLinks: e.NoLinks, Umask: p.Umask,
		Third: e.Third, TTY: e.TTY, Rows: e.Rows, Cols: e.Cols, Started: e.Started, Pty: e.Pty}
	if e.Third {
		s.Env = nil
	}
	if s.Dir == "" {
		s.Dir = string(p.Dir)
	}
	for _, v := range s.Env {
		if list, ok := strings.CutPrefix(v, "PATH="); ok {
			s.Path = pathDirs(list)
		}
	}
	if e.Stopped != nil {
		s.Stopped = func(ws syscall.WaitStatus) { e.Stopped(ws.StopSignal()) }
	}
	s.Exited = func(x child.Exit) {
		res := resultOf(x.Status)
		switch {
		case x.Fault != nil && x.Fault.IsExec():
			err := &ExecError{Status: 126, Path: x.Fault.Object, Err: x.Fault.Errno}
			if x.Fault.Errno == syscall.ENOENT || x.Fault.Errno == syscall.ENOTDIR {
				err.Status = 127
			}
			e.Exited(x.PID, Result{Status: err.Status}, err)
		case x.Fault != nil:
			e.Exited(x.PID, Result{Status: 125}, x.Fault)
		default:
			e.Exited(x.PID, res, x.Err)
		}
	}
	if e.TTY {
		return r.Child.Spawn(s)
	}
	var null *os.File
	for i, f := range e.Files {
		if f == nil {
			if null == nil {
				var err error
				if null, err = os.OpenFile(os.DevNull, os.O_RDWR, 0); err != nil {
					return err
				}
				defer null.Close()
			}
			f = null
		}
		s.Files[i] = int(f.Fd())
	}
	return r.Child.Spawn(s)
}

// pathDirs are the directories of PATH in which a program may be looked for: those that do not depend on
// where the caller is.
func pathDirs(list string) []string {
	var out []string
	for d := range strings.SplitSeq(list, ":") {
		if strings.HasPrefix(d, "/") {
			out = append(out, d)
		}
	}
	return out
}

// mergeEnv puts more over base.
func mergeEnv(base []plan.Bytes, more []string) []string {
	out := make([]string, 0, len(base)+len(more))
	at := make(map[string]int, len(base)+len(more))
	put := func(s string) {
		k, _, _ := strings.Cut(s, "=")
		if i, ok := at[k]; ok {
			out[i] = s
			return
		}
		at[k] = len(out)
		out = append(out, s)
	}
	for _, b := range base {
		put(string(b))
	}
	for _, s := range more {
		put(s)
	}
	return out
}

// Signal sends sig to the process group of a program that Exec started, or of the first one (0).
func (r *Running) Signal(pid int, sig syscall.Signal) error {
	switch {
	case r.still.Load(): // process 1 would send it after the thaw, and nobody can wait for that
		return errors.New("the session is frozen: thaw it first")
	case r.Plan.Process.AsPID1:
		r.Child.SendSignal(sig)
		return nil
	case pid == 0 && r.Child.Main() == 0:
		return errors.New("no program runs that the signal could be for: name one, or end the session")
	case pid == 0:
		pid = r.Child.Main()
	}
	if err := r.Child.SignalNow(-pid, sig); err != nil && !child.IsGone(err) {
		return fmt.Errorf("signalling process group %d: %w", pid, err)
	}
	return nil
}

// Freeze stops every process of the sandbox, by its control group if it has one; Thaw lets them go on. Without a group
// whoever was stopped before goes on too.
func (r *Running) Freeze() error {
	if r.Plan.Process.AsPID1 && r.Freezer == nil {
		return errors.New("the program runs with --as-pid-1 and cannot be stopped from inside")
	}
	if !r.Plan.Scoped() && r.Freezer == nil {
		return errors.New("without a PID namespace and a control group nothing stops everything inside at once")
	}
	if r.frozen.Swap(true) {
		return nil
	}
	if r.Freezer != nil {
		r.still.Store(true)
		err := r.Freezer(true)
		if err == nil || r.Plan.Process.AsPID1 {
			return err
		}
		r.still.Store(false) // before 5.2
	}
	return nobody(r.Child.SignalNow(-1, syscall.SIGSTOP))
}

// Still says whether process 1 is frozen too, and hears nothing.
func (r *Running) Still() bool { return r.still.Load() }

// nobody takes it for no failure that there was no process.
func nobody(err error) error {
	if errors.Is(err, syscall.ESRCH) {
		return nil
	}
	return err
}

// Thaw is the opposite of Freeze.
func (r *Running) Thaw() error {
	if !r.frozen.Swap(false) {
		return nil
	}
	if r.still.Swap(false) {
		return r.Freezer(false)
	}
	return nobody(r.Child.SignalNow(-1, syscall.SIGCONT))
}

// Frozen says whether Freeze is in force.
func (r *Running) Frozen() bool { return r.frozen.Load() }

package stage

import (
	"fmt"
	"syscall"
)

// Fault says which step of the set-up failed and why. It unwraps to the errno.
type Fault struct {
	Phase  string // "setup" or "start"
	Index  int    // instruction on the tape
	Step   string
	Object string
	Errno  syscall.Errno
}

func (f *Fault) Error() string {
	if f.Object == "" {
		return fmt.Sprintf("%s: %v", f.Step, f.Errno)
	}
	return fmt.Sprintf("%s %s: %v", f.Step, f.Object, f.Errno)
}

func (f *Fault) Unwrap() error { return f.Errno }

func faultAt(t *tape, phase string, f fault) *Fault {
	out := &Fault{Phase: phase, Index: int(f.index), Errno: syscall.Errno(f.errno)}
	if i := int(f.index); i >= 0 {
		s := stepOf(t, i)
		out.Step, out.Object = s.Name, s.Object
	}
	if out.Step == "" { // the clone of the program's own process
		out.Step = "starting a process"
	}
	return out
}

// stepOf returns the step of instruction i.
func stepOf(t *tape, i int) Step {
	s := Step{}
	for k := range t.steps {
		if t.steps[k].first > i {
			break
		}
		s = t.steps[k].Step
	}
	return s
}

// IsExec says whether the fault is that the program itself could not be executed.
func (f *Fault) IsExec() bool { return f.Step == execStep }

// execStep is the name of the one step whose failure is the program's, not the sandbox's.
const execStep = "executing"

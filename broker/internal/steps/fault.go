//go:build linux

package steps

import (
	"fmt"
	"syscall"

	"sbx.example/sbx/shared/tape"
)

// Fault says which step of the set-up failed and why. It unwraps to the errno.
type Fault struct {
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

func FaultAt(t *tape.Tape, f tape.Stop) *Fault {
	out := &Fault{Errno: syscall.Errno(f.Errno)}
	if i := int(f.Index); i >= 0 {
		s := stepOf(t, i)
		out.Step, out.Object = s.Name, s.Object
	}
	if out.Step == "" { // the clone of the program's own process
		out.Step = "starting a process"
	}
	return out
}

// stepOf returns the step of instruction i.
func stepOf(t *tape.Tape, i int) tape.Step {
	s := tape.Step{}
	for k := range t.Steps {
		if t.Steps[k].First > i {
			break
		}
		s = t.Steps[k].Step
	}
	return s
}

// IsHostName says whether the fault is that no host name can be set, which the filters of containers' engines refuse.
func (f *Fault) IsHostName() bool {
	return f.Step == "setting host name" && (f.Errno == syscall.EPERM || f.Errno == syscall.ENOSYS)
}

// IsExec says whether the fault is that the program itself could not be executed.
func (f *Fault) IsExec() bool { return f.Step == ExecStep }

// ExecStep is the name of the one step whose failure is the program's, not the sandbox's.
const ExecStep = "executing"

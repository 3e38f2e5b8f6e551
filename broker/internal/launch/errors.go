package launch

import (
	"errors"
	"fmt"

	"sbx.example/sbx/broker/plan"
)

// ErrUnavailable is wrapped by errors that mean that this host has no sandbox to offer at all.
var ErrUnavailable = errors.New("no sandbox can be built on this host")

// ExecError is the program's own failure to start, not the sandbox's.
type ExecError struct {
	Status int // 126 or 127
	Path   string
	Err    error
}

func (e *ExecError) Error() string {
	return fmt.Sprintf("executing %s: %v", plan.Bytes(e.Path).Quote(), e.Err)
}
func (e *ExecError) Unwrap() error { return e.Err }

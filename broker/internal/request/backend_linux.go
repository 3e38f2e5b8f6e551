package request

import (
	"fmt"

	"sbx.example/sbx/broker/internal/quoting"
)

// setBackend names what carries the plan out.
func (r *Request) setBackend(v string) error {
	switch v {
	case "auto", "native", "helper", "bwrap", "landlock", "vm":
		r.Backend = v
		return nil
	case "devcontainer":
		r.Backend, r.containers = v, true
		return nil
	case "passthrough":
		r.NoSandbox = true
		return nil
	case "seatbelt": // planned and shown, and run on a Mac
		r.Seatbelt = true
		return nil
	}
	return fmt.Errorf("%s is not one of auto, native, helper, bwrap, landlock, vm, devcontainer, passthrough",
		quoting.Quote(v))
}

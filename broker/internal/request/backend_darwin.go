package request

import (
	"fmt"

	"sbx.example/sbx/broker/internal/quoting"
)

// setBackend names what holds the program. Of those that there are on Linux each says so.
func (r *Request) setBackend(v string) error {
	switch v {
	case "auto", "seatbelt":
		return nil
	case "passthrough":
		r.NoSandbox = true
		return nil
	case "native", "helper", "landlock", "bwrap":
		return fmt.Errorf("%s works on Linux only; leave the option out, here seatbelt holds the program", v)
	}
	return fmt.Errorf("%s is not one of auto, seatbelt, passthrough", quoting.Quote(v))
}

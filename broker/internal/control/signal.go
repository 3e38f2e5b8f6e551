package control

import (
	"fmt"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"sbx.example/sbx/broker/plan"
)

// Signal reads TERM, SIGTERM, 15, or nothing for TERM.
func Signal(name string) (syscall.Signal, error) {
	if name == "" {
		return syscall.SIGTERM, nil
	}
	if n, err := strconv.ParseUint(name, 10, 7); err == nil && n > 0 && n <= 64 {
		return syscall.Signal(n), nil
	}
	if s := unix.SignalNum("SIG" + strings.TrimPrefix(strings.ToUpper(name), "SIG")); s != 0 {
		return s, nil
	}
	return 0, fmt.Errorf("%s is not a signal", plan.Bytes(name).Quote())
}

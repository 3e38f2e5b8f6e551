package hint

import (
	"slices"

	"golang.org/x/sys/unix"

	"sbx.example/sbx/broker/internal/steps"
)

func isErrno(f *steps.Fault, names ...string) bool {
	return slices.Contains(names, unix.ErrnoName(f.Errno))
}

package cli

import (
	"golang.org/x/sys/unix"
	"slices"

	"sbx/shared/stage"
)

func isErrno(f *stage.Fault, names ...string) bool {
	return slices.Contains(names, unix.ErrnoName(f.Errno))
}

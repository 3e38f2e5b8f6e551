package command

import (
	"slices"

	"golang.org/x/sys/unix"

	"sbx/shared/stage"
)

func isErrno(f *stage.Fault, names ...string) bool {
	return slices.Contains(names, unix.ErrnoName(f.Errno))
}

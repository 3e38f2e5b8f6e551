package cli

import (
	"golang.org/x/sys/unix"

	"sbx/shared/stage"
)

func isErrno(f *stage.Fault, names ...string) bool {
	return contains(names, unix.ErrnoName(f.Errno))
}

package session

import (
	"syscall"

	"golang.org/x/sys/unix"
)

// removeForeign is for what only containers leave.
func removeForeign(string) error { return syscall.EPERM }

// renameNew renames, and replaces nothing (renamex_np(2)).
func renameNew(from, to string) error { return unix.RenamexNp(from, to, unix.RENAME_EXCL) }

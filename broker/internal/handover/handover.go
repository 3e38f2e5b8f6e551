// Package handover says which descriptors of a caller's a sandboxed program may be given as they are. What it is given it can open anew
// through /proc/self/fd, with the user's rights to the file, and change by the descriptor (ftruncate); everything else reaches it through a pipe that the
// caller copies. It must never change a descriptor. Called by launch, client and cli; shared/stage has the same rule where nothing may allocate (passable).
package handover

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// Check says why the descriptor may not be handed into a sandbox as descriptor i. A file may that was opened for reading and writing, because
// that is what the caller gives, and one that was opened for writing and is empty, because all that it will hold is the program's. A log that
// is appended to, or that has content, is not the program's to read or to cut off.
func Check(i, fd int) error {
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return fmt.Errorf("looking at descriptor %d: %w", i, err)
	}
	flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFL, 0)
	if err != nil {
		return fmt.Errorf("looking at descriptor %d: %w", i, err)
	}
	what := "something that is no pipe"
	switch path := flags&unix.O_PATH != 0; st.Mode & unix.S_IFMT {
	case unix.S_IFIFO:
		if !path {
			return nil
		}
	case unix.S_IFREG:
		access := flags & unix.O_ACCMODE
		switch {
		case path || access == unix.O_RDONLY:
			what = "a file that is not open for writing"
		case flags&unix.O_APPEND != 0:
			what = "a file that is appended to"
		case access == unix.O_WRONLY && st.Size > 0:
			what = "a file that has content"
		default:
			return nil
		}
	case unix.S_IFCHR:
		if st.Rdev == unix.Mkdev(1, 3) && !path {
			return nil
		}
		what = "a device"
	case unix.S_IFDIR:
		what = "a directory"
	case unix.S_IFSOCK:
		what = "a socket"
	}
	return fmt.Errorf("descriptor %d is %s: pass a pipe and copy", i, what)
}

// Same says whether two files are one, so that what is written to both has one order.
func Same(a, b *os.File) bool {
	if a == nil || b == nil {
		return false
	}
	x, err := a.Stat()
	if err != nil {
		return false
	}
	y, err := b.Stat()
	return err == nil && os.SameFile(x, y)
}

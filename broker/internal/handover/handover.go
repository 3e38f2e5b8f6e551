//go:build linux

// Package handover says which descriptors of a caller's a sandboxed program may be given as they are. What it is given
// it can open anew through /proc/self/fd, with the user's rights to the file, and change by the descriptor (ftruncate);
// everything else reaches it through a pipe that the caller copies. It must never change a descriptor. launch, client,
// attend and live call it, and faststart, where nothing may allocate (Passes).
package handover

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// Check says why the descriptor may not be handed into a sandbox as descriptor i. A file may that was opened for
// reading and writing, because that is what the caller gives, and one that was opened for writing and is empty, because
// all that it will hold is the program's. A log that is appended to, or that has content, is not the program's to read
// or to cut off.
func Check(i, fd int) error {
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return fmt.Errorf("looking at descriptor %d: %w", i, err)
	}
	flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFL, 0)
	if err != nil {
		return fmt.Errorf("looking at descriptor %d: %w", i, err)
	}
	if k := kindOf(&st, uintptr(flags)); k != passes {
		return fmt.Errorf("descriptor %d is %s: pass a pipe and copy", i, words[k])
	}
	return nil
}

// kind is what a descriptor is to whoever hands it in.
type kind uint8

const (
	passes kind = iota
	noPipe
	noWriting
	appended
	content
	device
	directory
	socket
)

// words are those of the kinds that are refused.
var words = [...]string{"", "something that is no pipe", "a file that is not open for writing",
	"a file that is appended to", "a file that has content",
	"a device", "a directory", "a socket"}

// Passes says whether Check would let a descriptor pass that fstat(2) and F_GETFL say this of. It is for who runs
// before Go's runtime (faststart).
//
//go:nosplit
//go:norace
func Passes(st *unix.Stat_t, flags uintptr) bool { return kindOf(st, flags) == passes }

// Lent says whether what fstat(2) says this of is not given as descriptor i, but lent (Feed): a pipe to read from. It
// is for the same caller.
//
//go:nosplit
//go:norace
func Lent(i uintptr, st *unix.Stat_t) bool { return i == 0 && st.Mode&unix.S_IFMT == unix.S_IFIFO }

//go:nosplit
//go:norace
func kindOf(st *unix.Stat_t, flags uintptr) kind {
	path, access := flags&unix.O_PATH != 0, flags&unix.O_ACCMODE
	switch st.Mode & unix.S_IFMT {
	case unix.S_IFIFO:
		if !path {
			return passes
		}
	case unix.S_IFREG:
		switch {
		case path || access == unix.O_RDONLY:
			return noWriting
		case flags&unix.O_APPEND != 0:
			return appended
		case access == unix.O_WRONLY && st.Size > 0:
			return content
		}
		return passes
	case unix.S_IFCHR:
		if st.Rdev == nullDevice && !path {
			return passes
		}
		return device
	case unix.S_IFDIR:
		return directory
	case unix.S_IFSOCK:
		return socket
	}
	return noPipe
}

// nullDevice is the number of /dev/null.
const nullDevice = 1<<8 | 3

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

//go:build linux

package machine

import (
	"fmt"
	"io"

	"golang.org/x/sys/unix"
)

// archive writes a cpio archive in the format "newc", of which a kernel makes its first root file system
// (Documentation/driver-api/early-userspace/buffer-format.rst).
type archive struct {
	out io.Writer
	at  int64 // bytes written
	ino int
	err error
}

// add writes one entry of n bytes, which content has. mode is that of inode(7).
func (a *archive) add(name string, mode uint32, n int64, content io.Reader) {
	if a.err != nil {
		return
	}
	a.ino++
	a.print("070701")
	for _, v := range []int64{int64(a.ino), int64(mode), 0, 0, 1, 0, n, 0, 0, 0, 0, int64(len(name) + 1), 0} {
		a.print(fmt.Sprintf("%08X", v))
	}
	a.print(name + "\x00")
	a.pad()
	if n > 0 && a.err == nil {
		var copied int64
		copied, a.err = io.CopyN(a.out, content, n)
		a.at += copied
	}
	a.pad()
}

// dir writes a directory.
func (a *archive) dir(name string) { a.add(name, unix.S_IFDIR|0o755, 0, nil) }

// close writes the end.
func (a *archive) close() error {
	a.add("TRAILER!!!", 0, 0, nil)
	return a.err
}

func (a *archive) print(s string) {
	if a.err != nil {
		return
	}
	var n int
	n, a.err = io.WriteString(a.out, s)
	a.at += int64(n)
}

func (a *archive) pad() { a.print("\x00\x00\x00"[:(4-a.at%4)%4]) }

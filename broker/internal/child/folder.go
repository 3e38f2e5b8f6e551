//go:build linux

package child

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"sbx.example/sbx/broker/plan"
	"sbx.example/sbx/shared/tape"
)

// Folder is what must exist on the host before anything is mounted: the upper and work directories of overlays, the
// files of names. All of it lies in the session's folder.
type Folder struct {
	Session string // the folder itself, which is there already unless process 1 makes it ahead of its plan
	Dirs    []Dir  // in this order
	Files   []File
	Own     bool // process 1 makes the folder itself, and never one that is there
}

// Dir is one directory.
type Dir struct {
	Path string // absolute
	Mode uint32
}

// File is one file with its content, 0644.
type File struct{ Path, Text string }

// Make makes what is not there yet.
func (f Folder) Make() error {
	for _, d := range f.Dirs {
		if err := unix.Mkdir(d.Path, d.Mode); err != nil && err != unix.EEXIST {
			return fmt.Errorf("making the session's folder %s: %w", d.Path, err)
		}
	}
	for _, x := range f.Files {
		if err := os.WriteFile(x.Path, []byte(x.Text), 0o644); err != nil {
			return fmt.Errorf("making the session's folder: %w", err)
		}
	}
	return nil
}

// makeFolder has the tape do what Make does. It comes after the identity maps: before, the kernel lets nobody make a
// file.
func (c *builder) makeFolder() {
	t, folder := c.T, c.folder
	if folder.Own {
		t.At("making session folder", folder.Session)
		t.Call(unix.SYS_MKDIRAT, tape.AtCwd, t.Str(folder.Session), 0o700) // never one that is there
	}
	for _, d := range folder.Dirs {
		t.At("making directory", d.Path)
		t.Call(unix.SYS_MKDIRAT, tape.AtCwd, t.Str(d.Path), uintptr(d.Mode)).May(uint16(unix.EEXIST))
	}
	for _, f := range folder.Files {
		t.At("writing", f.Path)
		c.writeNew(f.Path, f.Text, unix.O_TRUNC)
	}
}

// fill makes the files that stand on top of layers.
func (c *builder) fill(m *plan.Mount, rel string) {
	for _, f := range m.Files {
		c.writeNew(rel+"/"+string(f.Name), string(f.Text), unix.O_EXCL)
	}
}

func (c *builder) writeNew(path, text string, flag uintptr) {
	t := c.T
	t.Call(unix.SYS_OPENAT, tape.AtCwd, t.Str(path), unix.O_WRONLY|unix.O_CREAT|unix.O_NOFOLLOW|unix.O_CLOEXEC|flag,
		0o644).To(tape.RegA)
	t.Call(unix.SYS_WRITE, 0, t.Bytes([]byte(text)), uintptr(len(text))).From(0, tape.RegA).To(tape.RegB)
	t.Want(tape.RegB, uintptr(len(text)), uintptr(unix.ENOSPC))
	t.Call(unix.SYS_CLOSE).From(0, tape.RegA)
}

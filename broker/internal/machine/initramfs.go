//go:build linux

package machine

import (
	"bytes"
	"debug/elf"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"

	"golang.org/x/sys/unix"
)

// What the first root file system of a guest holds.
const (
	initName    = "/machine-init"
	startName   = "machine-start" // what process 1 starts itself as
	modulesName = "/drivers"
)

// initramfs writes a guest's first root file system: sbx itself, and those of the wanted drivers that the kernel has as
// files in the directory dir.
func initramfs(out io.Writer, self io.ReaderAt, dir fs.FS, wanted []string,
	run func(string, io.Reader) ([]byte, error)) error {
	n, err := loaded(self)
	if err != nil {
		return fmt.Errorf("reading sbx itself: %w", err)
	}
	a := &archive{out: out}
	for _, d := range []string{"dev", "proc", "sys", "root", modulesName[1:]} {
		a.dir(d)
	}
	a.add(initName[1:], unix.S_IFREG|0o755, n, io.NewSectionReader(self, 0, n))
	dep, err := fs.ReadFile(dir, "modules.dep")
	if err != nil && !errors.Is(err, fs.ErrNotExist) { // without any, all is built in
		return fmt.Errorf("reading which drivers the kernel has: %w", err)
	}
	for i, m := range resolve(string(dep), wanted) {
		text, err := fs.ReadFile(dir, m.file)
		if err == nil {
			text, err = unpacked(text, run)
		}
		if err != nil {
			return fmt.Errorf("reading the driver %s: %w", m.name, err)
		}
		a.add(path.Join(modulesName[1:], fmt.Sprintf("%02d-%s", i, m.name)), unix.S_IFREG|0o644, int64(len(text)),
			bytes.NewReader(text))
	}
	return a.close()
}

// loaded is how much of a program the kernel loads. What comes behind is for debuggers, and a third of sbx.
func loaded(file io.ReaderAt) (n int64, err error) {
	f, err := elf.NewFile(file)
	if err != nil {
		return 0, err
	}
	for _, p := range f.Progs {
		if p.Type == elf.PT_INTERP {
			return 0, errors.New("it is linked dynamically, and a guest has no libraries yet (build it with CGO_ENABLED=0)")
		}
		if p.Type == elf.PT_LOAD {
			n = max(n, int64(p.Off+p.Filesz))
		}
	}
	return n, nil
}

// memory is a file without a name, to be handed to QEMU.
func memory(name string) (*os.File, error) {
	fd, err := unix.MemfdCreate(name, unix.MFD_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("making a file in memory: %w", err)
	}
	return os.NewFile(uintptr(fd), name), nil
}

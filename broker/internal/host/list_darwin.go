package host

import (
	"io"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"
)

// EachEntry passes on what the open directory fd has, "." and ".." left out, until each has enough.
func EachEntry(fd int, each func(Entry) bool) error {
	own, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return err
	}
	f := os.NewFile(uintptr(own), "directory")
	defer f.Close()
	for {
		list, err := f.ReadDir(256)
		for _, e := range list {
			typ := modeType(e.Type())
			if typ == unknown {
				typ = typeAt(fd, e.Name())
			}
			if !each(Entry{e.Name(), typ}) {
				return nil
			}
		}
		if err == io.EOF || err == nil && len(list) == 0 {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

func modeType(m fs.FileMode) Type {
	switch m & fs.ModeType {
	case 0:
		return File
	case fs.ModeDir:
		return Dir
	case fs.ModeSymlink:
		return Link
	case fs.ModeSocket:
		return Socket
	case fs.ModeIrregular:
		return unknown
	}
	return Other
}

package host

import (
	"errors"
	"fmt"
	"os"
	"path"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// Type of a file, reduced to what a mount plan needs.
type Type uint8

// The types.
const (
	Other Type = iota
	File
	Dir
	Link
	Socket
)

// Stat is the identity and kind of one file (statx(2)).
type Stat struct {
	Type     Type
	Dev, Ino uint64
	Nlink    uint64
	UID      uint32
	Perm     uint32 // low 12 bits of the mode
}

// Entry is one name in a directory.
type Entry struct {
	Name string
	Type Type
}

// FS is the host's file system, read without following the last link.
type FS struct{}

// Lstat looks at p itself.
func (FS) Lstat(p string) (Stat, error) {
	var st unix.Stat_t
	if err := unix.Lstat(p, &st); err != nil {
		return Stat{}, &os.PathError{Op: "lstat", Path: p, Err: err}
	}
	return Stat{typeOf(st.Mode), st.Dev, st.Ino, uint64(st.Nlink), st.Uid, st.Mode & 0o7777}, nil
}

func typeOf(mode uint32) Type {
	switch mode & unix.S_IFMT {
	case unix.S_IFREG:
		return File
	case unix.S_IFDIR:
		return Dir
	case unix.S_IFLNK:
		return Link
	case unix.S_IFSOCK:
		return Socket
	}
	return Other
}

// Readlink returns the text of the link p.
func (FS) Readlink(p string) (string, error) { return os.Readlink(p) }

// ReadDir lists p, sorted by name, "." and ".." left out.
func (FS) ReadDir(p string) ([]Entry, error) {
	list, err := os.ReadDir(p)
	if err != nil && len(list) == 0 {
		return nil, err
	}
	out := make([]Entry, len(list))
	for i, e := range list {
		out[i].Name = e.Name()
		switch m := e.Type(); {
		case m.IsRegular():
			out[i].Type = File
		case m.IsDir():
			out[i].Type = Dir
		case m&os.ModeSymlink != 0:
			out[i].Type = Link
		case m&os.ModeSocket != 0:
			out[i].Type = Socket
		}
	}
	return out, nil
}

// Access reports whether the caller may read (4), write (2) or execute (1) p, as the kernel says.
func (FS) Access(p string, mode uint32) bool {
	return unix.Faccessat(unix.AT_FDCWD, p, mode, unix.AT_EACCESS) == nil
}

// LinkAt is a symbolic link that a walk met.
type LinkAt struct{ Path, Text string }

// maxLinks is the kernel's own bound on links in one walk (path_resolution(7)).
const maxLinks = 40

// reader is the part of FS that a walk needs.
type reader interface {
	Lstat(string) (Stat, error)
	Readlink(string) (string, error)
}

// Resolve walks the absolute path p, following every link, and returns where it leads, the links on
// the way, and what is there. A component that does not exist is an error that wraps ENOENT; canon is
// then the canonical form of as much as exists, with the rest appended.
func Resolve(fs reader, p string) (canon string, links []LinkAt, st Stat, err error) {
	if !strings.HasPrefix(p, "/") {
		return "", nil, Stat{}, fmt.Errorf("resolving %q: not absolute", p)
	}
	rest := strings.Split(p[1:], "/")
	canon = "/"
	st = Stat{Type: Dir}
	for len(rest) > 0 {
		name := rest[0]
		rest = rest[1:]
		switch name {
		case "", ".":
			continue
		case "..":
			canon = path.Dir(canon)
			continue
		}
		next := path.Join(canon, name)
		if st, err = fs.Lstat(next); err != nil {
			return path.Join(append([]string{next}, rest...)...), links, Stat{}, err
		}
		if st.Type != Link {
			if st.Type != Dir && len(rest) > 0 && strings.Trim(strings.Join(rest, ""), "/.") != "" {
				return "", links, Stat{}, &os.PathError{Op: "resolving", Path: next, Err: syscall.ENOTDIR}
			}
			canon = next
			continue
		}
		if len(links) >= maxLinks {
			return "", links, Stat{}, &os.PathError{Op: "resolving", Path: p, Err: syscall.ELOOP}
		}
		text, err := fs.Readlink(next)
		if err != nil {
			return "", links, Stat{}, err
		}
		links = append(links, LinkAt{next, text})
		if strings.HasPrefix(text, "/") {
			canon = "/"
		}
		rest = append(strings.Split(text, "/"), rest...)
	}
	if canon == "/" {
		st, err = fs.Lstat("/")
	} else if st.Type == Link {
		st, err = fs.Lstat(canon)
	}
	return canon, links, st, err
}

// NotExist says whether err means that a path does not exist.
func NotExist(err error) bool {
	return errors.Is(err, syscall.ENOENT) || errors.Is(err, syscall.ENOTDIR)
}

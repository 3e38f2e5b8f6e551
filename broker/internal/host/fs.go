package host

import (
	"errors"
	"fmt"
	"os"
	"path"
	"slices"
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

// Inode tells objects apart, whatever their names: by file system and number.
type Inode struct{ Dev, Ino uint64 }

// Inode is which object it is.
func (s Stat) Inode() Inode { return Inode{s.Dev, s.Ino} }

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
	return statOf(&st), nil
}

func statOf(st *unix.Stat_t) Stat {
	return Stat{typeOf(uint32(st.Mode)), uint64(st.Dev), st.Ino, uint64(st.Nlink), st.Uid, uint32(st.Mode) & 0o7777}
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
	fd, err := unix.Open(p, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, &os.PathError{Op: "listing", Path: p, Err: err}
	}
	defer unix.Close(fd)
	out, err := list(fd)
	if err != nil {
		err = &os.PathError{Op: "listing", Path: p, Err: err}
	}
	return out, err
}

func list(fd int) ([]Entry, error) {
	out := make([]Entry, 0, 32)
	err := EachEntry(fd, func(e Entry) bool {
		out = append(out, e)
		return true
	})
	if err == nil {
		slices.SortFunc(out, func(a, b Entry) int { return strings.Compare(a.Name, b.Name) })
	}
	return out, err
}

// Lists says whether a list that is sorted by name, as ReadDir's is, has the name.
func Lists(list []Entry, name string) bool {
	_, ok := entry(list, name)
	return ok
}

func entry(list []Entry, name string) (Entry, bool) {
	i, ok := slices.BinarySearchFunc(list, name, func(e Entry, name string) int { return strings.Compare(e.Name, name) })
	if !ok {
		return Entry{}, false
	}
	return list[i], true
}

// unknown is the type of an entry on a file system that does not say.
const unknown Type = 255

// typeAt looks at a name of a directory; what has gone is of no type.
func typeAt(dir int, name string) (t Type) {
	var st unix.Stat_t
	if unix.Fstatat(dir, name, &st, unix.AT_SYMLINK_NOFOLLOW) == nil {
		t = typeOf(uint32(st.Mode))
	}
	return t
}

// ReadFile reads a file of proc(5) or a small one: without the poller, which os.ReadFile asks about every
// file, and in as few pieces as the kernel gives.
func ReadFile(p string) ([]byte, error) {
	fd, err := unix.Open(p, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: p, Err: err}
	}
	defer unix.Close(fd)
	b := make([]byte, 0, 4<<10)
	for {
		if len(b) == cap(b) {
			b = slices.Grow(b, cap(b))
		}
		n, err := unix.Read(fd, b[len(b):cap(b)])
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			return b, &os.PathError{Op: "read", Path: p, Err: err}
		}
		if n == 0 {
			return b, nil
		}
		b = b[:len(b)+n]
	}
}

// Access reports whether the caller may read (4), write (2) or execute (1) p, as the kernel says.
func (FS) Access(p string, mode uint32) bool {
	return unix.Faccessat(unix.AT_FDCWD, p, mode, unix.AT_EACCESS) == nil
}

// LinkAt is a symbolic link that a walk met.
type LinkAt struct{ Path, Text string }

// maxLinks is the kernel's own bound on links in one walk (path_resolution(7)).
const maxLinks = 40

// Exchanged is Cache.Exchanged: who keeps nothing does not notice it.
func (FS) Exchanged() string { return "" }

// reader is the part of FS that a walk needs.
type reader interface {
	Lstat(string) (Stat, error)
	Readlink(string) (string, error)
}

type lister interface {
	reader
	ReadDir(string) ([]Entry, error)
}

// Resolve walks the absolute path p, following every link, and returns where it leads, the links on
// the way, and what is there. A component that does not exist is an error that wraps ENOENT; canon is
// then the canonical form of as much as exists, with the rest appended.
func Resolve(fs reader, p string) (canon string, links []LinkAt, st Stat, err error) {
	if !strings.HasPrefix(p, "/") {
		return "", nil, Stat{}, fmt.Errorf("resolving %q: not absolute", p)
	}
	canon, rest, st, err := plainPrefix(fs, p)
	if err != nil {
		return path.Clean(p), nil, Stat{}, err
	}
	for rest != "" {
		var name string
		name, rest, _ = strings.Cut(rest, "/")
		switch name {
		case "", ".":
			continue
		case "..":
			canon, st = path.Dir(canon), Stat{Type: Dir}
			continue
		}
		next := path.Join(canon, name)
		if st, err = fs.Lstat(next); err != nil {
			return path.Join(next, rest), links, Stat{}, err
		}
		if st.Type != Link {
			if st.Type != Dir && strings.Trim(rest, "/") != "" {
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
		st = Stat{Type: Dir}
		if rest == "" {
			rest = text
		} else {
			rest = text + "/" + rest
		}
	}
	if st.Type != Dir && err == nil && strings.HasSuffix(p, "/") {
		return "", links, Stat{}, &os.PathError{Op: "resolving", Path: p, Err: syscall.ENOTDIR}
	}
	if st.Ino == 0 { // the walk ended in a directory that it only passed through
		st, err = fs.Lstat(canon)
	}
	return canon, links, st, err
}

// ByLink says whether a link stands on the way from a directory, which is no link, to a name below it.
func ByLink(fs lister, dir, name string) bool {
	if list, err := fs.ReadDir(dir); err == nil {
		first, _, deeper := strings.Cut(name, "/")
		if e, ok := entry(list, first); !ok || e.Type != Link && !(e.Type == Dir && deeper) {
			return false
		}
	}
	_, links, _, _ := Resolve(fs, path.Join(dir, name))
	return len(links) > 0
}

// LeadsTo is where p leads, with what does not exist appended: p itself, clean, where nobody can say.
func LeadsTo(fs reader, p string) string {
	if canon, _, _, err := Resolve(fs, p); canon != "" && (err == nil || NotExist(err)) {
		return canon
	}
	return path.Clean(p)
}

// plainPrefix walks p as far as it is made of plain names and holds no link, without building a string:
// most walks of planning end here.
func plainPrefix(fs reader, p string) (canon, rest string, st Stat, err error) {
	canon, st = "/", Stat{Type: Dir}
	for i := 1; i < len(p); {
		end := strings.IndexByte(p[i:], '/')
		if end < 0 {
			end = len(p)
		} else {
			end += i
		}
		if name := p[i:end]; name == "" || name[0] == '.' && strings.Trim(name, ".") == "" {
			return canon, p[i:], st, nil
		}
		s, err := fs.Lstat(p[:end])
		if err != nil {
			return "", "", Stat{}, err
		}
		if s.Type != Dir {
			return canon, p[i:], st, nil
		}
		canon, st = p[:end], s
		i = end + 1
	}
	return canon, "", st, nil
}

// NotExist says whether err means that a path does not exist.
func NotExist(err error) bool {
	return errors.Is(err, syscall.ENOENT) || errors.Is(err, syscall.ENOTDIR)
}

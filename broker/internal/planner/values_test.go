package planner

import (
	"hash/fnv"
	"os"
	"path"
	"slices"
	"strings"
	"syscall"

	"sbx.example/sbx/broker/internal/host"
)

// values is a file system made of values.
type values map[string]host.Stat

// links of a values file system are kept beside it.
type valuesFS struct {
	stats        values
	links, texts map[string]string
	names        map[string][]string // of each directory, in no order
}

// newFS makes a file system of lines: "/path" is a file, "/path : contents" as well, "/path/" a directory, "/path ->
// text" a link, "/path = /other" a hard link, "/path !socket" and "/path !pipe" what they say. Directories above are
// made.
func newFS(lines ...string) valuesFS {
	fs := valuesFS{values{}, map[string]string{}, map[string]string{}, map[string][]string{}}
	put := func(p string, typ host.Type) {
		if _, ok := fs.stats[p]; !ok && p != "/" {
			dir, name := path.Split(p)
			dir = path.Clean(dir)
			fs.names[dir] = append(fs.names[dir], name)
		}
		h := fnv.New32a()
		_, _ = h.Write([]byte(p))
		fs.stats[p] = host.Stat{Type: typ, Dev: 1, Ino: uint64(h.Sum32()), Nlink: 1, UID: 1000, Perm: 0o755}
	}
	put("/", host.Dir)
	for _, line := range lines {
		p, typ, other := line, host.File, ""
		if at, text, ok := strings.Cut(line, " : "); ok {
			p = at
			fs.texts[p] = text
		} else if at, text, ok := strings.Cut(line, " -> "); ok {
			p, typ = at, host.Link
			fs.links[p] = text
		} else if at, text, ok := strings.Cut(line, " = "); ok {
			p, other = at, text
		} else if at, ok := strings.CutSuffix(line, " !socket"); ok {
			p, typ = at, host.Socket
		} else if at, ok := strings.CutSuffix(line, " !pipe"); ok {
			p, typ = at, host.Other
		} else if at, ok := strings.CutSuffix(line, "/"); ok {
			p, typ = at, host.Dir
		}
		for d := path.Dir(p); d != "/"; d = path.Dir(d) {
			if _, ok := fs.stats[d]; !ok {
				put(d, host.Dir)
			}
		}
		put(p, typ)
		if other != "" {
			st := fs.stats[other]
			st.Nlink++
			fs.stats[other], fs.stats[p] = st, st
		}
	}
	return fs
}

func (fs valuesFS) Lstat(p string) (host.Stat, error) {
	if st, ok := fs.stats[p]; ok {
		return st, nil
	}
	errno := syscall.ENOENT
	if st, ok := fs.stats[path.Dir(p)]; ok && st.Type != host.Dir {
		errno = syscall.ENOTDIR
	}
	return host.Stat{}, &os.PathError{Op: "lstat", Path: p, Err: errno}
}

func (fs valuesFS) Readlink(p string) (string, error) {
	if text, ok := fs.links[p]; ok {
		return text, nil
	}
	return "", &os.PathError{Op: "readlink", Path: p, Err: syscall.EINVAL}
}

func (fs valuesFS) ReadDir(p string) ([]host.Entry, error) {
	if st, err := fs.Lstat(p); err != nil {
		return nil, err
	} else if st.Type != host.Dir {
		return nil, &os.PathError{Op: "listing", Path: p, Err: syscall.ENOTDIR}
	}
	var out []host.Entry
	for _, name := range fs.names[p] {
		if st, ok := fs.stats[path.Join(p, name)]; ok {
			out = append(out, host.Entry{Name: name, Type: st.Type})
		}
	}
	slices.SortFunc(out, func(a, b host.Entry) int { return strings.Compare(a.Name, b.Name) })
	return out, nil
}

func (fs valuesFS) Stamp(p string) (host.Stamp, error) {
	st, err := fs.Lstat(p)
	return host.Stamp{Type: st.Type, Dev: st.Dev, Ino: st.Ino, Size: int64(len(fs.texts[p]))}, err
}

func (fs valuesFS) Peek(p string, off int64, n int) ([]byte, error) {
	text := fs.texts[p]
	return []byte(text[min(int(off), len(text)):min(int(off)+n, len(text))]), nil
}

func (fs valuesFS) Exchanged() string { return "" }

func (fs valuesFS) Access(p string, mode uint32) bool {
	_, _, _, err := host.Resolve(fs, p)
	return err == nil
}

//go:build linux

package bwrap

import (
	"path"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// kind is what has a name.
type kind uint8

const (
	missing kind = iota
	directory
	regular // or anything else that is no directory
	link
)

// entry is what has a name, as a walk meets it.
type entry struct {
	kind kind
	text string // of a link
	err  syscall.Errno
}

// tree is the host's files, each looked at once.
type tree map[string]entry

// at is what the host has at a path, whose directories are no links.
func (t tree) at(p string) entry {
	if e, ok := t[p]; ok {
		return e
	}
	var st unix.Stat_t
	var e entry
	switch err := unix.Lstat(p, &st); {
	case err == unix.ENOENT:
	case err != nil:
		e.err, _ = err.(syscall.Errno)
	case st.Mode&unix.S_IFMT == unix.S_IFDIR:
		e.kind = directory
	case st.Mode&unix.S_IFMT == unix.S_IFLNK:
		e = readLink(p)
	default:
		e.kind = regular
	}
	t[p] = e
	return e
}

func readLink(p string) entry {
	buf := make([]byte, 4096)
	n, err := unix.Readlink(p, buf)
	if err != nil {
		errno, _ := err.(syscall.Errno)
		return entry{err: errno}
	}
	return entry{kind: link, text: string(buf[:n])}
}

// maxLinks is how many links one walk follows (path_resolution(7)).
const maxLinks = 40

// found is where a walk has ended.
type found struct {
	path string // that exists, without links
	entry
	rest []string // names that are missing, the first one in path
}

// walk resolves p by what has each name, and follows links; the last one only if follow is set.
func walk(p string, at func(string) entry, follow bool) (found, syscall.Errno) {
	f := found{path: "/", entry: entry{kind: directory}}
	rest := strings.FieldsFunc(p, func(r rune) bool { return r == '/' })
	for links := 0; len(rest) > 0; {
		name := rest[0]
		switch {
		case name == ".":
			rest = rest[1:]
			continue
		case f.kind != directory:
			return f, unix.ENOTDIR
		case name == "..":
			f.path, rest = path.Dir(f.path), rest[1:]
			continue
		}
		next := strings.TrimSuffix(f.path, "/") + "/" + name
		e := at(next)
		switch {
		case e.err != 0:
			return f, e.err
		case e.kind == missing:
			f.rest = rest
			return f, 0
		case e.kind == link && (follow || len(rest) > 1):
			if links++; links > maxLinks {
				return f, unix.ELOOP
			}
			if strings.HasPrefix(e.text, "/") {
				f = found{path: "/", entry: entry{kind: directory}}
			}
			rest = append(strings.FieldsFunc(e.text, func(r rune) bool { return r == '/' }), rest[1:]...)
		default:
			f.path, f.entry, rest = next, e, rest[1:]
		}
	}
	return f, 0
}

// real is realpath(3) of a path of the host's.
func (t tree) real(p, cwd string) (string, error) {
	if p == "" || cwd == "" && p[0] != '/' {
		return "", unix.ENOENT
	}
	if !strings.HasPrefix(p, "/") {
		p = cwd + "/" + p
	}
	f, errno := walk(p, t.at, true)
	switch {
	case errno != 0:
		return "", errno
	case len(f.rest) > 0:
		return "", unix.ENOENT
	}
	return f.path, nil
}

// layer is one mount of the sandbox, as the picture of it knows it.
type layer struct {
	target  string
	sources []string // directories or the file of the host's that it shows, topmost first
	own     bool     // names can be made in it: it is the sandbox's alone
	kernel  bool     // a file system of the kernel's, in which nothing can be made
	ro      bool
	hides   string            // what of the host's it hides, and may be asked for; "" is nothing
	made    map[string]entry  // what was made in it, by its whole path
	served  map[string][]name // names that are shown in a directory of the host's and are not there
	covered []name            // what was mounted on in it, by its whole path
}

// name is one that a served directory shows.
type name struct {
	name string
	entry
}

// view is a picture of what will be seen.
type view struct {
	host   tree
	layers []*layer
	top    map[string]int // the last layer at a path
}

// of is the layer that shows p: the last that was mounted on it or above it.
func (v *view) of(p string) *layer {
	last := v.top["/"]
	for i := 1; i < len(p); i++ {
		if p[i] == '/' {
			last = max(last, v.top[p[:i]])
		}
	}
	return v.layers[max(last, v.top[p])]
}

// at is what has the name p inside, whose directories are no links.
func (v *view) at(p string) entry {
	l := v.of(p)
	if e, ok := l.made[p]; ok && p != l.target {
		return e
	}
	rel := strings.TrimPrefix(p, l.target)
	if l.target == "/" {
		rel = p
	}
	if p == l.target {
		if len(l.sources) == 0 {
			return entry{kind: directory}
		}
		rel = ""
	}
	for _, s := range l.sources {
		if e := v.host.at(path.Clean(s + "/" + rel)); e.kind != missing || e.err != 0 {
			return e
		}
	}
	return entry{}
}

// push mounts l.
func (v *view) push(l *layer) {
	if l.target == "/" {
		v.layers, v.top = nil, map[string]int{}
	}
	l.made = map[string]entry{}
	v.top[l.target] = len(v.layers)
	v.layers = append(v.layers, l)
}

// behind is the host's path of a directory that a layer shows.
func (l *layer) behind(p string) string {
	return path.Clean(l.sources[0] + "/" + strings.TrimPrefix(p, strings.TrimSuffix(l.target, "/")))
}

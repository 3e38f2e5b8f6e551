//go:build linux

package writes

import (
	"path"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// name is a place in a tree, by directories and without links and dots; whether there really is no link on the way is
// seen when it is walked.
type name struct {
	root  *root
	rel   string // with a NUL at its end; "." for the tree itself
	slash bool   // it was written with a slash behind, so that it must be a directory
	ruled *ruling
}

// unjudged is the same name, of which nothing is known.
func (n *name) unjudged() *name { return &name{root: n.root, rel: n.rel, slash: n.slash} }

func (n *name) path() string { return n.rel[:len(n.rel)-1] }

// abs is the name as a path inside.
func (n *name) abs() string {
	if n.path() == "." {
		return n.root.Path
	}
	return n.root.Path + "/" + n.path()
}

// onHost is the name as a path of the host's.
func (n *name) onHost() string {
	if n.path() == "." {
		return n.root.Host
	}
	return n.root.Host + "/" + n.path()
}

// split is the directory that the name is in, "." for the tree itself, and the last part.
func (n *name) split() (dir, base string) {
	p := n.path()
	if i := strings.LastIndexByte(p, '/'); i >= 0 {
		return p[:i], p[i+1:]
	}
	return ".", p
}

// named says where one of the names of a call leads. nil: to none of the trees, as far as can be told. An error is
// the call's answer.
func (j *job) named(dirArg, pathArg int8, mem []byte, follow bool) *name {
	size, e := j.call.Path(int(pathArg), mem)
	return j.said(dirArg, mem, size, e, follow)
}

// said is named for a name that was copied.
func (j *job) said(dirArg int8, mem []byte, size int, e syscall.Errno, follow bool) *name {
	if e != 0 || size < 2 { // the kernel says the same; "" is a descriptor or nothing
		return nil
	}
	p := string(mem[:size-1])
	if p[0] != '/' {
		base := j.base(dirArg)
		if base == "" {
			return nil
		}
		p = below(base, p)
	} else if strings.HasPrefix(p, "/dev/") || strings.HasPrefix(p, "/proc/") {
		if p = j.magic(p); p == "" {
			return nil
		}
	}
	return j.leads(p, follow)
}

// written is a name as it is written, from the root on; "" where that cannot be told.
func (j *job) written(dirArg, pathArg int8, mem []byte) string {
	size, e := j.call.Path(int(pathArg), mem)
	if e != 0 || size < 2 {
		return ""
	}
	p := string(mem[:size-1])
	if p[0] == '/' {
		return clean(p)
	}
	if base := j.base(dirArg); base != "" {
		return clean(below(base, p))
	}
	return ""
}

// below joins a name to a directory that is no link. Whoever is there has walked it, so what is above is plain from
// the text.
func below(base, p string) string {
	for strings.HasPrefix(p, "../") {
		base, p = path.Dir(base), strings.TrimLeft(p[3:], "/")
	}
	return base + "/" + p
}

// leads is named for an absolute path. With dots in it, it is walked at once: what is above a directory that a link
// leads to is elsewhere.
func (j *job) leads(p string, follow bool) *name {
	slash := p[len(p)-1] == '/'
	last := p[strings.LastIndexByte(strings.TrimRight(p, "/"), '/')+1:]
	if last = strings.TrimRight(last, "/"); last == "." || last == ".." {
		switch j.d.kind {
		case kindMake, kindSymlink, kindRemove, kindRename, kindBind: // the kernel says that there is no such name
			return nil
		}
		slash, follow = true, true
	}
	if strings.Contains(p, "/..") {
		return j.straight(p, slash, follow)
	}
	p = clean(p)
	switch at := j.find(p); {
	case at.root == nil && j.linkAbove(p), at.look && at.linked(p, follow || slash):
		return j.straight(p, slash, follow)
	case at.root != nil && !j.leaves(at):
		return newName(at.root, p, slash)
	}
	return nil
}

// linkAbove says whether one of the sandbox's own links is on the way.
func (k *Carrier) linkAbove(abs string) bool {
	for l := range k.Links {
		if strings.HasPrefix(abs, l) && (len(abs) == len(l) || abs[len(l)] == '/') {
			return true
		}
	}
	return false
}

// linked says whether there is a link on the way to a name.
func (r *root) linked(abs string, follow bool) bool {
	flags := uint64(unix.O_PATH)
	if !follow {
		flags |= unix.O_NOFOLLOW
	}
	fd, e := openAt(r.fd, nulled(newName(r, abs, false).rel), flags, 0)
	if e == 0 {
		unix.Close(fd)
	}
	return e == unix.ELOOP
}

func newName(r *root, p string, slash bool) *name {
	rel := "."
	if len(p) > len(r.Path) {
		rel = p[len(r.Path)+1:]
	}
	return &name{root: r, rel: rel + "\x00", slash: slash}
}

// base is the directory that a relative name starts from, as a path inside; "" if it is none.
func (j *job) base(arg int8) string {
	dir := int32(unix.AT_FDCWD)
	if arg >= 0 {
		dir = int32(uint32(j.call.Arg(int(arg))))
	}
	switch {
	case dir == unix.AT_FDCWD && j.cwd != "":
	case dir == unix.AT_FDCWD:
		j.cwd = j.links("cwd\x00")
	case dir < 0:
		return ""
	default:
		return j.links("fd/" + strconv.Itoa(int(dir)) + "\x00")
	}
	return j.cwd
}

// links reads one of the caller's links in /proc.
func (j *job) links(where string) string {
	k, e := j.callers.readlink(j.call, nulled(where), j.text[:])
	if e != 0 || k == 0 || k == len(j.text) || j.text[0] != '/' {
		return ""
	}
	return string(j.text[:k])
}

// magic replaces what leads through the caller's own descriptors, directories and root; "" if it leads to none of the
// trees.
func (j *job) magic(p string) string {
	rest, ok := strings.CutPrefix(p, "/proc/self/")
	if !ok {
		rest, ok = strings.CutPrefix(p, "/proc/thread-self/")
	}
	if !ok {
		if rest, ok = strings.CutPrefix(p, "/dev/fd/"); ok {
			rest = "fd/" + rest
		} else if i := strings.Index("/dev/stdin /dev/stdout /dev/stderr", p); i >= 0 && len(p) > len("/dev/std") {
			rest, ok = "fd/"+strconv.Itoa(i/11), true
		}
	}
	first, tail, more := strings.Cut(rest, "/")
	switch {
	case !ok:
		return ""
	case first == "root" && more:
		return "/" + tail
	case first == "cwd" && more:
		if base := j.links("cwd\x00"); base != "" {
			return base + "/" + tail
		}
	case first == "fd":
		number, tail, more := strings.Cut(tail, "/")
		if n, err := strconv.ParseUint(number, 10, 31); err == nil {
			base := j.links("fd/" + strconv.FormatUint(n, 10) + "\x00")
			if base != "" && more {
				base += "/" + tail
			}
			return base
		}
	}
	return ""
}

const maxLinks = 40 // as path_resolution(7)

// straight walks a path by reading links, as far as it lies in the trees. What it returns is a hint: whoever walks the
// name then does not follow links, and comes back here where one has appeared.
func (j *job) straight(p string, slash, follow bool) *name {
	todo := strings.Split(p, "/")
	cur, links := "", 0
	for len(todo) > 0 {
		c := todo[0]
		todo = todo[1:]
		switch c {
		case "", ".":
			continue
		case "..":
			if !j.isDir("/" + cur) {
				return nil // the kernel says so
			}
			cur = strings.TrimSuffix(path.Dir("/"+cur), "/")
			continue
		}
		next := cur + "/" + c
		last := len(strings.Trim(strings.Join(todo, ""), "/")) == 0 && !slash
		text, known := j.readLink(next)
		if !known {
			return nil
		}
		if text == "" || last && !follow {
			cur = next
			continue
		}
		if links++; links > maxLinks || j.NoLinks {
			return nil
		}
		if text[0] == '/' {
			cur = ""
		}
		slash = slash || last && text[len(text)-1] == '/'
		todo = append(strings.Split(text, "/"), todo...)
	}
	r := j.under(cur)
	if r == nil {
		return nil
	}
	return newName(r, cur, slash)
}

// readLink reads the link at a path without links; "" if that is none. It is not known what is where neither a tree
// nor one of the sandbox's own directories is.
func (k *Carrier) readLink(p string) (text string, known bool) {
	at := k.rootOf(p)
	if at == nil {
		text, known = k.Links[p]
		return text, known || k.holds(p)
	}
	if p == at.Path {
		return "", true
	}
	size, e := readLinkAt(at.fd, nulled(newName(at, p, false).rel), k.text[:])
	if e != 0 {
		return "", true
	}
	return string(k.text[:size]), size < len(k.text)
}

// isDir says whether a path without links is a directory, where that can be told.
func (k *Carrier) isDir(p string) bool {
	p = clean(p)
	at := k.rootOf(p)
	if at == nil {
		return k.holds(p)
	}
	var st unix.Stat_t
	e := statAt(at.fd, nulled(newName(at, p, false).rel), &st, unix.AT_SYMLINK_NOFOLLOW)
	return e == 0 && st.Mode&unix.S_IFMT == unix.S_IFDIR
}

// parent opens the directory that a name is in. It is closed by whoever gets it, unless it is the tree's.
func (n *name) parent() (fd int, base string, e syscall.Errno) {
	dir, base := n.split()
	if n.slash {
		base += "/"
	}
	base += "\x00"
	if dir == "." {
		return n.root.fd, base, 0
	}
	fd, e = openAt(n.root.fd, []byte(dir+"\x00"), unix.O_PATH|unix.O_DIRECTORY, 0)
	return fd, base, e
}

// in says whether a name is in a directory of its tree.
func (n *name) in(dir string) bool {
	own, _ := n.split()
	return own == dir
}

func (n *name) closeParent(fd int) {
	if fd != n.root.fd {
		unix.Close(fd)
	}
}

// isIn says whether a name is in a directory that is open: the parent of it was, and may have been moved.
func (n *name) isIn(dir int) bool {
	up, _ := n.split()
	return n.root.judge.id(up) == idOf(dir, "")
}

// contended says whether the name may be made only as long as its directory stays where it is.
func (n *name) contended() bool {
	_, base := n.split()
	return n.root.judge.of(n).place.Waits(base)
}

// turn keeps the directory of a contended name that is made where it is until the function that it returns is called.
// Nil: that cannot be had.
func (j *job) turn(n *name) (done func()) {
	if j.d.kind == kindRemove || !n.contended() {
		return func() {}
	}
	return j.Session.Alone(true)
}

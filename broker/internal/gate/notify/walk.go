//go:build linux

package notify

import (
	"os"
	"path"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"sbx.example/sbx/broker/internal/gate/names"
)

// object is what a name leads to, pinned.
type object struct {
	path   string   // resolved, as seen inside
	fd     int      // O_PATH; -1 when the directory exists and the name does not
	typ    uint32   // S_IFMT bits
	native bool     // mounted inside, and reached through a link that is not, or astray
	whole  bool     // a foreign file system
	within bool     // what the name leads to lies in it
	astray bool     // mounted inside, where the kernel does not come from where the caller stands
	links  []string // gated links on the way
	texts  []string // and what each says
}

func (o *object) close() {
	if o.fd >= 0 {
		unix.Close(o.fd)
		o.fd = -1
	}
}

// decided is the path that the question is about.
func (o *object) decided() string {
	if o.native && !o.astray {
		return o.links[len(o.links)-1]
	}
	return o.path
}

// outcome of a walk.
type outcome uint8

const (
	inside  outcome = iota // the kernel's own walk ends there as well, or fails by itself
	nothing                // neither here nor there, and the kernel says so
	denied
	gated
)

const maxLinks = 40 // as path_resolution(7)

// walker follows one name, place by place: inside where a place is mounted, on the host where it is not. Links are read
// and never followed by the kernel, so that each place is put before the view.
type walker struct {
	root   *sandboxRoot
	view   View
	rights rights
	make   bool // the last name need not exist
	look   look
	// grafter and files are set once something was placed or mounted.
	grafter Grafter
	files   *grafted
	astray  bool    // the walk starts at a place that something was mounted on since
	foreign Foreign // nil: there are none
	blind   bool    // the walk ended where nobody looks further

	cur     string // resolved
	dir     int    // of cur on the host, O_PATH; -1 when not open
	gone    bool   // cur is not inside, so nothing below it is
	links   []string
	texts   []string
	todo    []string // last element first
	budget  int
	refusal syscall.Errno
}

// walk resolves an absolute path.
func (w *walker) walk(p string, nofollow bool) (outcome, *object) {
	w.cur, w.dir, w.budget = "/", -1, maxLinks
	defer w.leave()
	nofollow = nofollow && !strings.HasSuffix(p, "/")
	w.push(p)
	for len(w.todo) > 0 {
		c := w.todo[len(w.todo)-1]
		w.todo = w.todo[:len(w.todo)-1]
		switch c {
		case ".":
			continue
		case "..":
			w.leave()
			w.cur = path.Dir(w.cur)
			continue
		}
		if out, o, done := w.step(c, len(w.todo) == 0, nofollow); done {
			return out, o
		}
	}
	// The path ended in a dot, or was the root: the object is the directory reached.
	if kernelFile(w.cur) {
		return inside, nil
	}
	fd, e := w.root.open(w.cur)
	if e == 0 {
		if w.stands(w.cur, "", fd, true) {
			return w.arrive(w.cur, fd, unix.S_IFDIR, true)
		}
		unix.Close(fd)
		if w.dir < 0 {
			var out outcome
			if fd, out = w.outside(w.cur, ".", true); fd < 0 {
				return out, nil
			}
			return w.arrive(w.cur, fd, unix.S_IFDIR, false)
		}
	}
	if e != 0 && e != unix.ENOENT || w.dir < 0 {
		return inside, nil
	}
	fd, err := unix.Openat(w.dir, ".", unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		return nothing, nil
	}
	return w.arrive(w.cur, fd, unix.S_IFDIR, false)
}

func (w *walker) push(p string) {
	parts := strings.Split(p, "/")
	for i := len(parts) - 1; i >= 0; i-- {
		if parts[i] != "" {
			w.todo = append(w.todo, parts[i])
		}
	}
}

func (w *walker) leave() {
	if w.dir >= 0 {
		unix.Close(w.dir)
	}
	w.dir, w.gone = -1, false
}

// step goes from w.cur to its child c.
func (w *walker) step(c string, last, nofollow bool) (outcome, *object, bool) {
	p := path.Join(w.cur, c)
	if kernelFile(p) {
		return inside, nil, true
	}
	if w.foreign != nil && w.foreign.Over(p) == p {
		if !last && w.todo[len(w.todo)-1] == ".." {
			w.leave()
			w.cur = p
			return 0, nil, false
		}
		out, o := w.foreigner(p, c)
		return out, o, true
	}
	fd, e := -1, unix.ENOENT
	if !w.gone {
		fd, e = w.root.open(p)
	}
	native := e == 0
	if e != 0 && e != unix.ENOENT {
		return inside, nil, true
	}
	if native && !w.stands(p, c, fd, last) {
		unix.Close(fd)
		native = false
	}
	if !native {
		var out outcome
		if fd, out = w.outside(p, c, last); fd < 0 {
			if out == gated {
				return gated, &object{path: p, fd: -1, links: w.links, texts: w.texts, astray: w.astray &&
					w.grafter.Granted(w.cur)}, true
			}
			return out, nil, true
		}
	}
	_, typ, err := identify(fd)
	if err != nil {
		unix.Close(fd)
		return nothing, nil, true
	}
	switch {
	case typ == unix.S_IFLNK && !(last && nofollow):
		out := w.link(p, fd, native)
		unix.Close(fd)
		return out, nil, out != gated
	case last:
		out, o := w.arrive(p, fd, uint32(typ), native)
		return out, o, true
	case typ != unix.S_IFDIR:
		unix.Close(fd)
		return nothing, nil, true
	}
	w.leave()
	w.cur = p
	if native {
		unix.Close(fd)
	} else {
		w.dir, w.gone = fd, e == unix.ENOENT
	}
	return 0, nil, false
}

// foreigner ends a walk at p, where a foreign file system is mounted. Only its first directory is touched, which asks
// nobody.
func (w *walker) foreigner(p, c string) (outcome, *object) {
	if no, errno := w.view.Denied(p); no {
		w.refusal = errno
		return denied, nil
	}
	if w.view.Visible(p) || w.grafter != nil && w.grafter.Granted(p) {
		w.blind = true
		if len(w.links) == 0 {
			return inside, nil
		}
		return gated, &object{path: p, fd: -1, typ: unix.S_IFDIR, whole: true, native: true, links: w.links, texts: w.texts}
	}
	if !w.view.Gated(p) {
		return nothing, nil
	}
	fd, real, e := w.openHost(p, c)
	if e != 0 {
		return nothing, nil
	}
	if real != p {
		unix.Close(fd)
		return nothing, nil
	}
	return gated, &object{path: p, fd: fd, typ: unix.S_IFDIR, whole: true, within: len(w.todo) > 0, links: w.links,
		texts: w.texts}
}

// link puts what a link says in front of what is still to do; gated means go on.
func (w *walker) link(p string, fd int, native bool) outcome {
	if w.budget--; w.budget < 0 {
		return nothing
	}
	if !native {
		if !w.view.Gated(p) {
			return nothing
		}
		w.links = append(w.links, p)
	}
	var buf [maxPath]byte
	k, err := unix.Readlinkat(fd, "", buf[:])
	if err != nil || k == 0 || k == len(buf) {
		return nothing
	}
	text := string(buf[:k])
	if !native {
		w.texts = append(w.texts, text)
	}
	if text[0] == '/' {
		w.leave()
		w.cur = "/"
	}
	if strings.HasSuffix(text, "/") {
		text += "."
	}
	w.push(text)
	return gated
}

// outside looks for a place on the host. -1 with gated: the directory is there, the name is free.
func (w *walker) outside(p, c string, last bool) (int, outcome) {
	if no, errno := w.view.Denied(p); no {
		w.refusal = errno
		return -1, denied
	}
	if w.grafter != nil && w.grafter.Granted(w.cur) {
		if w.astray && last && w.make {
			return -1, gated
		}
		return -1, nothing
	}
	if w.view.Visible(p) {
		return -1, nothing
	}
	fd, real, e := w.openHost(p, c)
	if e == unix.ENOENT && last && w.make && w.dir >= 0 && w.view.Gated(p) {
		return -1, gated
	}
	if e != 0 {
		return -1, nothing
	}
	if real == p {
		return fd, gated
	}
	// A link on the host where the sandbox has a directory of its own: the true name must pass as well.
	if no, errno := w.view.Denied(real); no {
		unix.Close(fd)
		w.refusal = errno
		return -1, denied
	}
	if !w.view.Gated(real) && !w.view.Visible(real) {
		unix.Close(fd)
		return -1, nothing
	}
	return fd, gated
}

// openHost pins p, the child c of w.cur, with the rights of the sandbox, and returns its true name.
func (w *walker) openHost(p, c string) (fd int, real string, e syscall.Errno) {
	w.rights.without(func() {
		if w.dir < 0 {
			w.dir, e = openPath(unix.AT_FDCWD, append([]byte(w.cur), 0), unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC,
				unix.RESOLVE_NO_MAGICLINKS)
		}
		if e == 0 {
			fd, e = openPath(w.dir, append([]byte(c), 0), unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, unix.RESOLVE_BENEATH|
				unix.RESOLVE_NO_MAGICLINKS)
		}
	})
	if e != 0 {
		return -1, "", e
	}
	real, err := os.Readlink(names.FdPath(fd))
	if err != nil {
		unix.Close(fd)
		return -1, "", unix.EACCES
	}
	return fd, real, 0
}

// arrive ends a walk at an object.
func (w *walker) arrive(p string, fd int, typ uint32, native bool) (outcome, *object) {
	if native && w.astray && w.grafter.Granted(p) {
		return gated, &object{path: p, fd: fd, typ: typ, native: true, astray: true}
	}
	if native && (len(w.links) == 0 || own(w.root, p) != "") {
		unix.Close(fd)
		return inside, nil
	}
	if !native && !w.view.Gated(p) {
		unix.Close(fd)
		return nothing, nil
	}
	return gated, &object{path: p, fd: fd, typ: typ, native: native, links: w.links, texts: w.texts}
}

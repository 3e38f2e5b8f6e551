//go:build linux

package notify

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path"

	"golang.org/x/sys/unix"

	"sbx.example/sbx/broker/internal/gate/names"
)

// native carries a call out where what is granted can be mounted: trees, what is executed and what is watched. The
// kernel then walks itself, and all that it can reach is mounted or a place that leads there. A file that is opened is
// handed over instead: one that is saved atomically is another each time, and writing what may be read is another
// question. It answers in every case.
func (r *request) native(objects []*object) {
	o := objects[0]
	switch {
	case o.whole || len(objects) > 1 && objects[1].whole:
		r.foreignTree(objects)
	case o.astray || len(objects) > 1 && objects[1].astray:
		r.astray(objects)
	case r.special(o):
		r.s.refuse(&r.n, r.op(o), o.decided(), unix.EACCES, specialWhy)
	case o.fd < 0, r.c.kind == kindMake, r.c.kind == kindDrop, r.c.kind == kindMove:
		r.changeNames(objects)
	case r.c.kind == kindExec:
		r.exec(o)
	case o.native: // a link on the way is all that is missing
		r.walkOn(o)
	case r.c.kind == kindOpen && r.flags&(unix.O_CREAT|unix.O_EXCL) == unix.O_CREAT|unix.O_EXCL:
		r.s.fail(r.n.id, unix.EEXIST)
	case o.typ == unix.S_IFDIR:
		r.directory(o)
	case o.typ == unix.S_IFLNK:
		r.linkItself(o)
	case r.c.kind == kindRead:
		if r.mounted(o, "watch") {
			r.walkAgain(o)
		}
	default:
		r.handOver(o)
	}
}

const foreignWhy = "a program serves this file system, so it is granted as a whole: something below it is refused " +
	"or secret"

// foreignTree asks about all of a file system, and mounts it. What the call finds there is between its caller and that
// file system.
func (r *request) foreignTree(objects []*object) {
	for _, o := range objects {
		// the other name of two lies on another mount, as the kernel says; or a link is all that is missing
		if !o.whole || o.native {
			continue
		}
		if !o.within && r.look() == sees { // that it is a directory is no secret
			r.place(o, o.path)
			return
		}
		op := "open-read"
		if r.changes(o, r.op(o)) {
			op = "open-write"
		}
		a := r.question(o, op)
		a.Dir, a.Foreign, a.Write = true, true, op == "open-write"
		answer, ok := r.allowed(o, a)
		switch {
		case !ok:
			return
		case answer.Mount == "":
			r.s.refuse(&r.n, op, o.path, unix.EACCES, foreignWhy)
			return
		case !r.graft(o, answer.Mount, answer.Write):
			return
		}
	}
	r.walkOn(objects...)
}

// walkOn lets the kernel walk, through the links that a name leads over.
func (r *request) walkOn(objects ...*object) {
	for _, o := range objects {
		if !r.placeLinks(o) {
			return
		}
	}
	r.s.pass(r.n.id)
}

// walkAgain is walkOn after a directory was mounted, which may be the one that the caller stands in.
func (r *request) walkAgain(objects ...*object) {
	var astray []*object
	defer func() { closeAll(astray) }()
	for i := range r.names {
		if out, o, _ := r.walkName(i); out == gated {
			if !o.astray {
				o.close()
				continue
			}
			astray = append(astray, o)
		}
	}
	if len(astray) > 0 {
		r.astray(astray)
		return
	}
	r.walkOn(objects...)
}

func (r *request) placeLinks(o *object) bool {
	for i, l := range o.links {
		if err := r.s.Grafter.Place(l, o.texts[i]); err != nil {
			r.s.refuse(&r.n, r.op(o), o.decided(), unix.EACCES, "placing a link failed: "+err.Error())
			return false
		}
	}
	return true
}

// place makes a directory be there, and nothing in it.
func (r *request) place(o *object, dir string) {
	if err := r.s.Grafter.Place(dir, ""); err != nil {
		r.s.refuse(&r.n, r.op(o), dir, unix.EACCES, "making a place failed: "+err.Error())
		return
	}
	r.walkOn(o)
}

// graft mounts what was granted; it answers when that fails.
func (r *request) graft(o *object, p string, write bool) bool {
	if err := r.s.Grafter.Graft(p, write); err != nil {
		r.s.refuse(&r.n, r.op(o), p, unix.EACCES, "mounting it failed: "+err.Error())
		return false
	}
	return true
}

// directory: its type is no secret, its names and what lies in it are.
func (r *request) directory(o *object) {
	g := r.s.Grafter
	temporary := r.c.kind == kindOpen && r.flags&unix.O_TMPFILE == unix.O_TMPFILE
	switch {
	case r.look() == sees:
		r.place(o, o.path)
	case r.c.kind == kindWrite || temporary:
		r.itself(o, temporary)
	case r.look() == writes:
		r.s.fail(r.n.id, unix.EISDIR)
	case r.c.op == "chdir", g.Own(o.path): // what it then names is asked about
		r.place(o, o.path)
	default:
		op := "list"
		if r.c.op == "watch" {
			op = "watch"
		}
		r.listing(o, op)
	}
}

// listing asks for the names in a directory, and shows them; a tree that was granted is mounted.
func (r *request) listing(o *object, op string) {
	answer, ok := r.allowed(o, r.question(o, op))
	switch {
	case !ok:
	case answer.Mount != "":
		if r.graft(o, answer.Mount, answer.Write) {
			r.walkAgain(o)
		}
	case op == "watch":
		r.place(o, o.path)
	default:
		r.list(o)
	}
}

// maxListed is how many names of a directory are shown without what they lead to.
const maxListed = 4096

// list makes places for the names in a directory. Whoever comes next to list it is asked about: a place is opened
// by nobody.
func (r *request) list(o *object) {
	var entries []os.DirEntry
	var err error
	r.rights().without(func() {
		var f *os.File
		if f, err = os.Open(names.FdPath(o.fd)); err == nil {
			entries, err = f.ReadDir(maxListed + 1)
			f.Close()
		}
	})
	if errors.Is(err, io.EOF) {
		err = nil
	}
	switch {
	case err == nil && len(entries) > maxListed:
		err = fmt.Errorf("it has more than %d names: grant it as a tree", maxListed)
	case err == nil:
		err = r.s.Grafter.List(o.path, entries)
	}
	if err != nil {
		r.s.refuse(&r.n, "list", o.path, unix.EACCES, "showing the names failed: "+err.Error())
		return
	}
	r.walkOn(o)
}

// itself asks for a directory that is changed itself, or in which a file without a name is to be made: that needs
// all of it.
func (r *request) itself(o *object, temporary bool) {
	a := r.question(o, "write")
	a.Op, a.Write = "write", true
	answer, ok := r.allowed(o, a)
	switch {
	case !ok:
	case answer.Mount != "":
		if r.graft(o, answer.Mount, answer.Write) {
			r.walkAgain(o)
		}
	case temporary:
		r.s.refuse(&r.n, "write", o.path, unix.EACCES,
			"a file without a name can be made only where the tree is granted for writing")
	default:
		r.alter(o)
	}
}

// mounted asks for a single file and mounts it, or the directory that was granted instead. Where it answers it returns
// false.
func (r *request) mounted(o *object, op string) bool {
	answer, ok := r.allowed(o, r.question(o, op))
	if !ok {
		return false
	}
	if answer.Mount != "" {
		return r.graft(o, answer.Mount, answer.Write)
	}
	if !r.graft(o, o.path, false) {
		return false
	}
	r.s.files.note(r.s.root.Load(), o.path)
	return true
}

// linkItself: where a link leads is decided about at its end.
func (r *request) linkItself(o *object) {
	switch r.c.kind {
	case kindStat, kindStatx, kindReadlink:
		r.carryOut(o)
	case kindWrite:
		r.s.refuse(&r.n, r.c.op, o.path, unix.EACCES, "a link that is not mounted cannot be changed")
	default:
		here := *o
		here.links, here.texts = append(here.links, o.path), append(here.texts, linkText(o.fd))
		r.walkOn(&here)
	}
}

func linkText(fd int) string {
	var buf [maxPath]byte
	k, err := unix.Readlinkat(fd, "", buf[:])
	if err != nil || k == 0 {
		return "?"
	}
	return string(buf[:k])
}

// exec mounts the file, its interpreter, and what that one needs in turn.
func (r *request) exec(o *object) {
	switch {
	case o.native:
	case o.typ == unix.S_IFDIR:
		r.s.fail(r.n.id, unix.EACCES)
		return
	case o.typ == unix.S_IFLNK:
		r.s.fail(r.n.id, unix.ELOOP)
		return
	}
	for range maxInterpreters {
		if !o.native && !r.mounted(o, "exec") || !r.placeLinks(o) {
			return
		}
		next := r.interpreter()
		if next == nil {
			r.walkAgain()
			return
		}
		defer next.close()
		if next.decided() == o.decided() {
			r.s.refuse(&r.n, "exec", o.decided(), unix.EACCES, "the interpreter is not there after it was mounted")
			return
		}
		o = next
	}
	r.s.refuse(&r.n, "exec", o.decided(), unix.ELOOP, "interpreters need interpreters")
}

// handOver asks for a file and does what the call wanted on it.
func (r *request) handOver(o *object) {
	if k := r.c.kind; r.s.TypeOnly != nil && (k == kindStat || k == kindStatx) && r.s.TypeOnly(r.question(o, r.op(o))) {
		r.veil = true
		r.carryOut(o)
		return
	}
	answer, ok := r.allowed(o, r.question(o, r.op(o)))
	switch {
	case !ok:
	case answer.Mount != "":
		if r.graft(o, answer.Mount, answer.Write) {
			r.walkAgain(o)
		}
	case r.c.kind == kindWrite:
		r.alter(o)
	default:
		r.carryOut(o)
	}
}

// changeNames asks about each name that is made, removed or moved. Where a tree around it is granted for writing, that
// is mounted and the kernel does it; else the broker does, to that name alone.
func (r *request) changeNames(objects []*object) {
	if r.exists(objects) {
		r.s.fail(r.n.id, unix.EEXIST)
		return
	}
	if r.c.op == "link" && (len(objects) < 2 || path.Dir(objects[0].path) != path.Dir(objects[1].path)) {
		r.s.fail(r.n.id, unix.EXDEV) // as between two mounts, which they become
		return
	}
	if r.c.kind == kindMove && len(objects) < 2 {
		r.s.fail(r.n.id, unix.EXDEV)
		return
	}
	mounts := 0
	for _, o := range objects {
		a := r.question(o, "write")
		a.Op, a.Write = "write", true
		switch {
		case o.fd >= 0:
		case r.c.kind == kindOpen:
			a.New = unix.S_IFREG
		case r.c.op == "mkdir":
			a.New = unix.S_IFDIR
		}
		answer, ok := r.allowed(o, a)
		if !ok {
			return
		}
		if answer.Mount != "" && answer.Mount != o.path {
			if !r.graft(o, answer.Mount, answer.Write) {
				return
			}
			mounts++
		}
	}
	switch {
	case mounts == len(objects):
		r.walkAgain(objects...)
	case mounts > 0:
		r.s.fail(r.n.id, unix.EXDEV)
	default:
		r.byHand(objects)
	}
}

// uncovers says whether a call removes or moves a name on which, or below which, something is grafted: the kernel
// removes and moves no mount point.
func (s *server) uncovers(c *call, names []name) bool {
	if s.Grafter == nil || c.kind != kindDrop && c.kind != kindMove || !s.Grafter.Placed() {
		return false
	}
	for i := range names {
		if full := names[i].full; len(full) > 0 && s.Grafter.Mounted(path.Clean(string(full[:len(full)-1]))) {
			return true
		}
	}
	return false
}

// uncover takes that away.
func (r *request) uncover() {
	if !r.s.uncovers(r.c, r.names) {
		return
	}
	for i := range r.names {
		if full := r.names[i].full; len(full) > 0 {
			// what stays mounted the kernel refuses to touch
			_ = r.s.Grafter.Unmount(path.Clean(string(full[:len(full)-1])))
		}
	}
}

// exists says whether the name that a call would make is taken.
func (r *request) exists(objects []*object) bool {
	return r.c.kind == kindMake && objects[0].fd >= 0 || r.c.name == "link" && len(objects) == 2 && objects[1].fd >= 0
}

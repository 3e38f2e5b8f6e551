package notify

import (
	"path"

	"golang.org/x/sys/unix"
)

// grant says which graft a call needs on an object to be carried out by the kernel itself.
func (r *request) grant(o *object, op string) Grant {
	switch {
	case o.fd < 0, op == "create", r.c.kind == kindMake, r.c.kind == kindDrop, r.c.kind == kindMove:
		return GrantName
	case op == "open-write", r.c.kind == kindWrite:
		return GrantWrite
	}
	return GrantRead
}

// impossible says why a call cannot be carried out whatever the answer: then nobody is asked.
func (r *request) impossible(o *object, op string, g Grant) string {
	s := r.s
	if o.typ != 0 && o.typ != unix.S_IFREG && o.typ != unix.S_IFDIR && o.typ != unix.S_IFLNK && (r.c.kind == kindOpen || r.c.kind == kindExec) {
		return "devices, pipes and sockets of the host are never opened"
	}
	if s.Grafter != nil || o.native && g == GrantRead && r.c.kind == kindOpen {
		return ""
	}
	switch {
	case g != GrantRead:
		return "writing outside what is mounted needs the graft agent, which is not running: grant the path before the start"
	case r.c.kind == kindExec:
		return "executing a file that is not mounted needs the graft agent, which is not running: grant the path before the start"
	case r.c.kind == kindRead:
		return "the place is not mounted, and mounting it needs the graft agent, which is not running: grant the path before the start"
	case r.c.kind != kindOpen:
		return ""
	case o.typ == unix.S_IFDIR && !o.native && !s.whole(o.path):
		return "opening the directory would give things below it that are never granted"
	case s.Opener != nil:
		return ""
	case o.typ == unix.S_IFDIR && s.Opener == nil:
		return "a directory can only be opened through a detached copy of its mount, which needs the graft agent: grant the path before the start"
	case o.typ != unix.S_IFREG:
		return "only regular files can be handed over without the graft agent"
	}
	return ""
}

func (s *server) whole(path string) bool {
	w, ok := s.View.(Whole)
	return ok && w.Whole(path)
}

// gated asks about the objects of a call and carries it out. It answers in every case.
func (r *request) gated(objects []*object) {
	var last Answer
	grafts := 0
	for _, o := range objects {
		op := r.op(o)
		g := r.grant(o, op)
		if why := r.impossible(o, op, g); why != "" {
			r.s.refuse(&r.n, op, o.decided(), unix.EACCES, why)
			return
		}
		answer, there := r.s.ask(&r.n, r.question(o, op))
		if !there {
			return
		}
		if !answer.Allow {
			if len(r.names) == 1 && r.plain(o) {
				r.s.refused.add(&r.n, r.flags, r.names[0].full, answer.Errno)
			}
			r.s.fail(r.n.id, answer.Errno)
			return
		}
		if g != GrantRead && !answer.Write {
			r.s.refuse(&r.n, op, o.decided(), unix.EACCES, "the grant is for reading only")
			return
		}
		last = answer
		if r.s.Grafter == nil || !(answer.Keep || g != GrantRead || r.c.kind == kindExec || r.c.kind == kindRead) {
			continue
		}
		if err := r.s.Grafter.Graft(r.s.ctx, o.decided(), g); err != nil {
			r.s.refuse(&r.n, op, o.decided(), unix.EACCES, "grafting failed: "+err.Error())
			return
		}
		grafts++
	}
	if grafts == len(objects) {
		r.afterGraft()
		return
	}
	r.carryOut(objects[0], last)
}

// plain says whether a call named its object without any link on the way: another link could lead elsewhere in a moment.
func (r *request) plain(o *object) bool {
	full := r.names[0].full
	return len(full) > 0 && len(o.links) == 0 && path.Clean(string(full[:len(full)-1])) == o.path
}

// afterGraft lets the kernel carry out a call whose objects are mounted by now. An executable may still name an
// interpreter that is not.
func (r *request) afterGraft() {
	if r.c.kind == kindExec {
		if more := r.interpreters(nil); len(more) > 0 {
			defer closeAll(more)
			if !r.graftInterpreters(more) {
				return
			}
		}
	}
	r.s.pass(r.n.id)
}

// carryOut does what the call wanted, on the pinned object.
func (r *request) carryOut(o *object, a Answer) {
	dir := r.names[0].path[len(r.names[0].path)-2] == '/'
	if dir && o.typ != unix.S_IFDIR {
		r.s.fail(r.n.id, unix.ENOTDIR)
		return
	}
	switch r.c.kind {
	case kindOpen:
		r.open(o)
	case kindStat:
		r.stat(o)
	case kindStatx:
		r.statx(o)
	case kindStatfs:
		r.statfs(o)
	case kindAccess:
		r.access(o)
	case kindReadlink:
		r.readlink(o)
	case kindXattr:
		r.s.fail(r.n.id, unix.EOPNOTSUPP) // attributes of the host's files are nobody's business inside
	default:
		r.s.refuse(&r.n, r.c.op, o.decided(), unix.EACCES, "the call cannot be carried out on behalf of another process")
	}
}

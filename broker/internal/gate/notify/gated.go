//go:build linux

package notify

import (
	"path"

	"golang.org/x/sys/unix"
)

// changes says whether a call would write what it names.
func (r *request) changes(o *object, op string) bool {
	switch r.c.kind {
	case kindMake, kindDrop, kindMove, kindWrite:
		return true
	}
	return o.fd < 0 || op == "create" || op == "open-write"
}

// special says whether an object is a device, pipe or socket that a call would use.
func (r *request) special(o *object) bool {
	switch r.c.kind {
	case kindOpen, kindExec, kindRead, kindWrite:
		return o.typ != 0 && o.typ != unix.S_IFREG && o.typ != unix.S_IFDIR && o.typ != unix.S_IFLNK
	}
	return false
}

const specialWhy = "devices, pipes and sockets of the host are never opened"

// impossible says why a call cannot be carried out without a Grafter, whatever the answer: then nobody is asked.
func (r *request) impossible(o *object, op string) string {
	s := r.s
	switch {
	case r.special(o):
		return specialWhy
	case o.native && !r.changes(o, op) && r.c.kind == kindOpen:
		return ""
	case r.changes(o, op):
		return "writing outside what is mounted needs the graft agent, which is not running: grant the path before the start"
	case r.c.kind == kindExec:
		return "executing a file that is not mounted needs the graft agent, which is not running: grant the path before " +
			"the start"
	case r.c.kind == kindRead:
		return "the place is not mounted, and mounting it needs the graft agent, which is not running: grant the path " +
			"before the start"
	case r.c.kind != kindOpen:
		return ""
	case o.typ == unix.S_IFDIR && !o.native && !s.whole(o.path):
		return "opening the directory would give things below it that are never granted"
	case s.Opener != nil:
		return ""
	case o.typ == unix.S_IFDIR && s.Opener == nil:
		return "a directory can only be opened through a detached copy of its mount, which needs the graft agent: grant " +
			"the path before the start"
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
	if r.s.Grafter != nil {
		r.native(objects)
		return
	}
	for _, o := range objects {
		op := r.op(o)
		if why := r.impossible(o, op); why != "" {
			r.s.refuse(&r.n, op, o.decided(), unix.EACCES, why)
			return
		}
		if _, ok := r.allowed(o, r.question(o, op)); !ok {
			return
		}
	}
	r.carryOut(objects[0])
}

// allowed puts a question about an object that is still where it was found. Where the answer is no, or nobody waits for
// it any more, it answers the call.
func (r *request) allowed(o *object, a Ask) (Answer, bool) {
	if o.gone() && r.again() {
		return Answer{}, false
	}
	answer, there := r.s.ask(&r.n, a)
	switch {
	case !there:
		return answer, false
	case !answer.Allow:
		if len(r.names) == 1 && r.plain(o) {
			r.s.refused.add(&r.n, r.flags, r.names[0].full, answer.Errno)
		}
		r.s.fail(r.n.id, answer.Errno)
		return answer, false
	case a.Write && !answer.Write:
		r.s.refuse(&r.n, a.Op, a.Path, unix.EACCES, "the grant is for reading only")
		return answer, false
	}
	return answer, true
}

// plain says whether a call named its object without any link on the way: another link could lead elsewhere in a
// moment.
func (r *request) plain(o *object) bool {
	full := r.names[0].full
	return len(full) > 0 && len(o.links) == 0 && path.Clean(string(full[:len(full)-1])) == o.path
}

// carryOut does what the call wanted, on the pinned object.
func (r *request) carryOut(o *object) {
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

//go:build linux

package notify

import (
	"path"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// covered says whether the directory that a relative name starts from, whose path is base, is a place of ours on which
// something was mounted after the caller went there. Its relative names then mean what is mounted, and the kernel finds
// nothing.
func (s *server) covered(root *sandboxRoot, pid uint32, dir int32, base []byte) bool {
	b := string(base)
	if len(b) > 1 {
		b = strings.TrimSuffix(b, "/")
	}
	if !s.Grafter.Granted(b) {
		return false
	}
	link := "/proc/" + strconv.FormatUint(uint64(pid), 10) + "/cwd"
	if dir != unix.AT_FDCWD {
		link = "/proc/" + strconv.FormatUint(uint64(pid), 10) + "/fd/" + strconv.Itoa(int(dir))
	}
	var st unix.Statx_t
	err := unix.Statx(unix.AT_FDCWD, link, unix.AT_STATX_DONT_SYNC, unix.STATX_MNT_ID, &st)
	return err == nil && st.Mnt_id == root.id.mount
}

// astray carries out a call of somebody who stands in such a directory, through the sandbox's own mounts: what they do
// not allow is refused by them.
func (r *request) astray(objects []*object) {
	o, s := objects[0], r.s
	switch {
	case o.fd < 0, r.c.kind == kindMake, r.c.kind == kindDrop, r.c.kind == kindMove:
		r.namesAstray(objects)
	case r.c.kind == kindExec && o.typ == unix.S_IFREG:
		r.execAstray(o)
	case r.c.op == "chdir" && o.typ == unix.S_IFDIR:
		r.place(o, o.path)
	case r.c.kind == kindExec, r.c.kind == kindRead:
		s.refuse(&r.n, r.c.op, o.path, unix.EACCES,
			"it was mounted after the program went there: change to the directory by its full name")
	case r.c.kind == kindWrite:
		r.alter(o)
	case r.c.kind == kindOpen && r.flags&(unix.O_CREAT|unix.O_EXCL) == unix.O_CREAT|unix.O_EXCL:
		s.fail(r.n.id, unix.EEXIST)
	case r.special(o):
		s.refuse(&r.n, r.op(o), o.path, unix.EACCES, specialWhy)
	default:
		r.carryOut(o)
	}
}

func (r *request) namesAstray(objects []*object) {
	if r.c.op == "link" || r.c.op == "bind" || r.c.kind == kindMove && len(objects) != 2 {
		r.s.fail(r.n.id, unix.EXDEV)
		return
	}
	if r.exists(objects) {
		r.s.fail(r.n.id, unix.EEXIST)
		return
	}
	dirs := make([]int, len(objects))
	for i, o := range objects {
		if !o.astray {
			r.s.fail(r.n.id, unix.EXDEV)
			return
		}
		fd, e := r.s.root.Load().open(path.Dir(o.path))
		if e != 0 {
			r.s.fail(r.n.id, e)
			return
		}
		defer unix.Close(fd)
		dirs[i] = fd
	}
	r.changeIn(objects, dirs)
}

// execAstray mounts the file once more, where the kernel comes.
func (r *request) execAstray(o *object) {
	base := r.s.root.Load().base(r.n.pid, r.names[0].dir, r.s.foreign())
	rel, below := strings.CutPrefix(o.path, base+"/")
	if base != "" && below && r.names[0].dir == unix.AT_FDCWD {
		if err := r.s.Grafter.GraftFor(int(r.n.pid), rel, o.path); err != nil {
			r.s.refuse(&r.n, "exec", o.path, unix.EACCES, "mounting it failed: "+err.Error())
			return
		}
	}
	r.s.pass(r.n.id)
}

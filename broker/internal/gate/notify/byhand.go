//go:build linux

package notify

import (
	"encoding/binary"
	"os"
	"path"
	"strconv"

	"golang.org/x/sys/unix"

	"sbx.example/sbx/broker/internal/gate/names"
	"sbx.example/sbx/broker/internal/host"
)

// NeedsTree is why a second name or a socket is not made beside what is granted name by name.
const NeedsTree = "it can be made only where the tree around it is granted for writing"

// byHand makes, removes and moves names that were granted, and not the tree that they lie in. The broker does to each
// on the host what the call wanted.
func (r *request) byHand(objects []*object) {
	if r.c.op == "link" || r.c.op == "bind" {
		r.s.refuse(&r.n, r.c.op, objects[0].path, unix.EACCES, NeedsTree)
		return
	}
	dirs := make([]int, len(objects))
	for i, o := range objects {
		fd, err := r.parent(o)
		if err != nil {
			r.s.refuse(&r.n, r.op(o), o.path, unix.EACCES, err.Error())
			return
		}
		defer unix.Close(fd)
		dirs[i] = fd
	}
	r.changeIn(objects, dirs)
}

// changeIn does to names in pinned directories what the call wanted.
func (r *request) changeIn(objects []*object, dirs []int) {
	if !idValid(r.s.fd, r.n.id) { // what was read of the caller's since was another's
		return
	}
	o := objects[0]
	var err error
	switch r.c.kind {
	case kindOpen:
		r.create(o, dirs[0])
		return
	case kindMake:
		err = r.makeName(o, dirs[0])
	case kindDrop:
		flags := 0
		if r.c.name == "rmdir" || r.c.name == "unlinkat" && r.n.args[2]&unix.AT_REMOVEDIR != 0 {
			flags = unix.AT_REMOVEDIR
		}
		r.rights().without(func() { err = unix.Unlinkat(dirs[0], path.Base(o.path), flags) })
	case kindMove:
		err = r.move(objects, dirs)
	default:
		err = unix.EACCES
	}
	if err == nil {
		for _, o := range objects { // nothing of ours is to stand for what is gone, when the caller looks
			r.s.Grafter.Unplace(o.path)
		}
	}
	r.done(err)
}

func (r *request) rights() rights { return rights{r.s.caps} }

// make has f make or move something and note that, with the rights of an ordinary program.
func (r *request) make(f func()) { r.s.makings.Do(func() { r.rights().without(f) }) }

// done answers with what the host's kernel said.
func (r *request) done(err error) {
	if err == nil {
		r.s.value(r.n.id, 0)
		return
	}
	e, _ := err.(unix.Errno)
	r.s.fail(r.n.id, e)
}

// parent pins the host's directory of an object, which must be where its name says.
func (r *request) parent(o *object) (fd int, err error) {
	dir := path.Dir(o.path)
	r.rights().without(func() {
		e := unix.Errno(0)
		if fd, e = openPath(unix.AT_FDCWD, append([]byte(dir), 0), unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC,
			unix.RESOLVE_NO_SYMLINKS|unix.RESOLVE_NO_MAGICLINKS); e != 0 {
			err = e
		}
	})
	return fd, err
}

// mode is a permission argument, less what the caller's mask takes and without the bits that change who somebody is.
func (r *request) mode(arg int) uint32 {
	mask := uint64(0o077)
	b, _ := os.ReadFile("/proc/" + strconv.FormatUint(uint64(r.n.pid), 10) + "/status")
	if m, err := strconv.ParseUint(host.StatusField(string(b), "Umask"), 8, 32); err == nil {
		mask = m
	}
	return uint32(r.n.args[arg]&0o777) &^ uint32(mask)
}

// create makes a file and hands it over, through a copy of its mount as any other.
func (r *request) create(o *object, dir int) {
	arg := map[string]int{"open": 2, "openat": 3, "creat": 1}[r.c.name]
	var err error
	mode := r.mode(arg)
	r.make(func() {
		fd := -1
		if fd, err = unix.Openat(dir, path.Base(o.path), unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL|unix.O_NOFOLLOW|
			unix.O_CLOEXEC, mode); err == nil {
			err = unix.Fchmod(fd, mode) // the broker's own mask is not the caller's
			r.s.makings.Note(o.path, fd)
			unix.Close(fd)
		}
		if err == nil {
			o.fd, err = unix.Openat(dir, path.Base(o.path), unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
		}
	})
	if err == unix.EEXIST && r.flags&unix.O_EXCL == 0 && r.again() { // somebody was quicker
		return
	}
	if err != nil {
		r.done(err)
		return
	}
	o.typ = unix.S_IFREG
	r.made = true
	r.open(o)
}

func (r *request) makeName(o *object, dir int) (err error) {
	name := path.Base(o.path)
	switch r.c.op {
	case "mkdir":
		mode := r.mode(map[string]int{"mkdir": 1, "mkdirat": 2}[r.c.name])
		r.make(func() {
			if err = names.MakeDir(dir, name, mode); err == nil {
				r.s.makings.NoteAt(o.path, dir, name)
			}
		})
	case "mknod":
		arg := map[string]int{"mknod": 1, "mknodat": 2}[r.c.name]
		typ := uint32(r.n.args[arg]) & unix.S_IFMT
		if typ != 0 && typ != unix.S_IFREG {
			return unix.EPERM
		}
		mode := r.mode(arg)
		r.rights().without(func() { err = unix.Mknodat(dir, name, unix.S_IFREG|mode, 0) })
	case "symlink":
		var b [maxPath]byte
		k, e := readPath(r.n.pid, r.n.args[0], b[:])
		if e != 0 || k < 2 {
			return unix.EFAULT
		}
		if !idValid(r.s.fd, r.n.id) {
			return unix.EINTR
		}
		r.rights().without(func() { err = unix.Symlinkat(string(b[:k-1]), dir, name) })
	}
	return err
}

// move moves files and links. What lies in a directory has rules of its own, so one that is not empty is moved only
// where both names are granted with all below them; else EXDEV makes mv copy.
func (r *request) move(objects []*object, dirs []int) (err error) {
	flags := uint(0)
	if r.c.name == "renameat2" {
		flags = uint(r.n.args[4])
	}
	switch typ := objects[0].typ; {
	case len(objects) != 2, typ != unix.S_IFDIR && objects[1].typ == unix.S_IFDIR:
		return unix.EXDEV
	case flags&^unix.RENAME_NOREPLACE != 0:
		return unix.EINVAL
	case typ == unix.S_IFDIR:
		return r.moveDir(objects, dirs, flags)
	case typ != unix.S_IFREG && typ != unix.S_IFLNK:
		return unix.EACCES
	case typ == unix.S_IFREG && objects[1].typ == unix.S_IFLNK: // the file that was granted is where the link leads
		return unix.EACCES
	}
	from := names.Name{Dir: dirs[0], Base: path.Base(objects[0].path)}
	to := names.Name{Dir: dirs[1], Base: path.Base(objects[1].path)}
	return r.s.makings.Move(objects[0].path, objects[1].path, func() (err error) {
		r.rights().without(func() { err = names.Move(from, to, flags, objects[1].fd < 0) })
		return err
	})
}

func (r *request) moveDir(objects []*object, dirs []int, flags uint) (err error) {
	from := names.Name{Dir: dirs[0], Base: path.Base(objects[0].path)}
	to := names.Name{Dir: dirs[1], Base: path.Base(objects[1].path)}
	whole := r.s.Grafter.Moves(objects[0].path, objects[1].path)
	r.rights().without(func() {
		var st unix.Stat_t
		switch err = unix.Fstatat(from.Dir, from.Base, &st, unix.AT_SYMLINK_NOFOLLOW); {
		case err != nil:
		case whole:
			err = unix.Renameat2(from.Dir, from.Base, to.Dir, to.Base, flags)
		default:
			err = names.MoveEmpty(from, to, st.Mode, flags)
		}
	})
	return err
}

// alter changes the attributes or the length of a pinned file.
func (r *request) alter(o *object) {
	if r.n.arch != r.s.native {
		r.foreign(o)
		return
	}
	var err error
	change := func(f func(string) error) { r.rights().without(func() { err = f(names.FdPath(o.fd)) }) }
	switch r.c.op {
	case "truncate":
		change(func(p string) error { return unix.Truncate(p, int64(r.n.args[1])) })
	case "chmod":
		mode := r.n.args[1]
		if r.c.dir >= 0 {
			mode = r.n.args[2]
		}
		change(func(p string) error { return unix.Fchmodat(unix.AT_FDCWD, p, uint32(mode)&0o1777, 0) })
	case "utime":
		times, ok := r.times()
		if !ok {
			r.s.fail(r.n.id, unix.EFAULT)
			return
		}
		change(func(p string) error { return unix.UtimesNanoAt(unix.AT_FDCWD, p, times, 0) })
	case "chown":
		err = r.keepsOwner(o)
	default:
		err = unix.EOPNOTSUPP
	}
	r.done(err)
}

// times copies the two moments of a call, once.
func (r *request) times() ([]unix.Timespec, bool) {
	arg, unit := 1, int64(1000)
	switch r.c.name {
	case "utimensat":
		arg, unit = 2, 1
	case "futimesat":
		arg = 2
	case "utime":
		unit = 0
	}
	now := unix.Timespec{Nsec: unix.UTIME_NOW}
	if r.n.args[arg] == 0 {
		return []unix.Timespec{now, now}, true
	}
	var b [32]byte
	n := 32
	if unit == 0 {
		n = 16
	}
	if k, e := readMemory(r.n.pid, r.n.args[arg], b[:n]); e != 0 || k != n || !idValid(r.s.fd, r.n.id) {
		return nil, false
	}
	word := func(i int) int64 { return int64(binary.LittleEndian.Uint64(b[8*i:])) }
	if unit == 0 {
		return []unix.Timespec{{Sec: word(0)}, {Sec: word(1)}}, true
	}
	return []unix.Timespec{{Sec: word(0), Nsec: word(1) * unit}, {Sec: word(2), Nsec: word(3) * unit}}, true
}

// keepsOwner lets a change of owner pass that is none.
func (r *request) keepsOwner(o *object) error {
	uid, gid := uint32(r.n.args[1]), uint32(r.n.args[2])
	if r.c.dir >= 0 {
		uid, gid = uint32(r.n.args[2]), uint32(r.n.args[3])
	}
	var st unix.Stat_t
	if err := unix.Fstat(o.fd, &st); err != nil {
		return err
	}
	root := r.s.root.Load()
	if uid != ^uint32(0) && uid != root.uids.inside(st.Uid) || gid != ^uint32(0) && gid != root.gids.inside(st.Gid) {
		return unix.EPERM
	}
	return nil
}

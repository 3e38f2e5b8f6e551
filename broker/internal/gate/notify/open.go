//go:build linux

package notify

import (
	"errors"
	"fmt"
	"os"
	"path"

	"golang.org/x/sys/unix"

	"sbx.example/sbx/broker/internal/gate/names"
)

// open hands the caller a descriptor of the pinned object.
func (r *request) open(o *object) {
	s := r.s
	switch {
	case o.typ == unix.S_IFLNK && r.flags&unix.O_PATH == 0:
		s.fail(r.n.id, unix.ELOOP)
		return
	case o.typ == unix.S_IFDIR && r.op(o) != "open-read":
		s.fail(r.n.id, unix.EISDIR)
		return
	case o.typ == unix.S_IFLNK:
		s.refuse(&r.n, "open-read", o.decided(), unix.EACCES, "a link that is not mounted cannot be opened, only read")
		return
	case r.flags&unix.O_DIRECTORY != 0 && o.typ != unix.S_IFDIR:
		s.fail(r.n.id, unix.ENOTDIR)
		return
	}
	op, write := r.op(o), false
	if s.Grafter != nil {
		write = r.made || op != "open-read"
	}
	source, err := s.source(o, write)
	if err != nil && o.gone() && r.again() { // it was replaced on the host, or by another thread
		return
	}
	if err != nil {
		s.refuse(&r.n, op, o.decided(), unix.EACCES, err.Error())
		return
	}
	if source != o.fd {
		defer unix.Close(source)
	}
	var fd int
	rights{s.caps}.without(func() {
		// O_PATH is not kept: the kernel hands over no such descriptor, and what was approved may be read.
		keep := uint64(unix.O_NONBLOCK | unix.O_DIRECTORY)
		if write {
			keep |= unix.O_ACCMODE | unix.O_TRUNC | unix.O_APPEND | unix.O_SYNC | unix.O_DIRECT
		}
		fd, err = unix.Open(names.FdPath(source), unix.O_RDONLY|unix.O_NOCTTY|unix.O_CLOEXEC|int(r.flags&keep), 0)
	})
	if err == nil && !write && r.config(o) {
		fd, err = names.Shown(fd, nil)
	}
	if err != nil && o.astray {
		r.done(err)
		return
	}
	if err != nil {
		s.refuse(&r.n, op, o.decided(), unix.EACCES, "opening the approved file: "+err.Error())
		return
	}
	// Who runs what he has written must not find it open for writing here (ETXTBSY).
	switch e := handOver(s.fd, r.n.id, fd, r.flags&unix.O_CLOEXEC != 0, write); e {
	case 0, unix.ENOENT: // ENOENT: the caller is gone
	case unix.EMFILE:
		s.fail(r.n.id, e)
	default:
		s.refuse(&r.n, op, o.decided(), unix.EACCES, "handing over a descriptor: "+e.Error())
	}
}

// config says whether an object is a repository's configuration that the sandbox's own mounts do not show.
func (r *request) config(o *object) bool {
	return r.s.Config != nil && !o.native && o.typ == unix.S_IFREG && r.s.Config(o.path)
}

// source returns what an object may be opened through: the sandbox's own mount, a detached copy of the
// host's, read-only unless writing was allowed, or a sealed copy of the contents. Never the host's mount itself: a
// descriptor carries its mount, and would be opened again for writing through /proc/self/fd, or climbed out of by "..".
func (s *server) source(o *object, write bool) (int, error) {
	if o.native {
		return o.fd, nil
	}
	if o.typ == unix.S_IFDIR && !s.whole(o.path) {
		return -1, errors.New("opening the directory would give things below it that are never granted")
	}
	if s.Opener != nil {
		return s.detached(o, write)
	}
	if o.typ != unix.S_IFREG {
		return -1, errors.New("only regular files can be handed over without the graft agent")
	}
	return s.copies.of(o.fd, rights{s.caps})
}

// detached asks the Opener and believes nothing of what it says.
func (s *server) detached(o *object, write bool) (int, error) {
	dup, err := unix.FcntlInt(uintptr(o.fd), unix.F_DUPFD_CLOEXEC, 3)
	if err != nil {
		return -1, err
	}
	pinned := os.NewFile(uintptr(dup), o.path)
	defer pinned.Close()
	tree, err := s.Opener.Detach(o.path, pinned, write)
	if moved := beside(o.path, dup); err != nil && moved != o.path {
		tree, err = s.Opener.Detach(moved, pinned, write)
	}
	if err != nil {
		return -1, fmt.Errorf("detaching: %w", err)
	}
	defer tree.Close()
	if err := checkDetached(int(tree.Fd()), o.fd, write); err != nil {
		return -1, fmt.Errorf("detaching: %w", err)
	}
	return unix.FcntlInt(tree.Fd(), unix.F_DUPFD_CLOEXEC, 3)
}

// beside is where in its directory something is by now, or else where it was.
func beside(was string, fd int) string {
	if now, err := os.Readlink(names.FdPath(fd)); err == nil && path.Dir(now) == path.Dir(was) {
		return now
	}
	return was
}

// checkDetached: the same object, on another mount, that is nosuid and nodev, and read-only unless it is to be written.
func checkDetached(tree, object int, write bool) error {
	a, _, err := identify(tree)
	if err != nil {
		return err
	}
	b, _, err := identify(object)
	if err != nil {
		return err
	}
	if a.major != b.major || a.minor != b.minor || a.ino != b.ino {
		return errors.New("the path leads to another object by now")
	}
	if a.mount == b.mount {
		return errors.New("not a copy of the mount")
	}
	var fs unix.Statfs_t
	if err := unix.Fstatfs(tree, &fs); err != nil {
		return err
	}
	want := int64(unix.ST_RDONLY | unix.ST_NOSUID | unix.ST_NODEV)
	if write {
		want &^= unix.ST_RDONLY
	}
	if int64(fs.Flags)&want != want {
		return errors.New("the copy of the mount is not read-only, nosuid and nodev")
	}
	return nil
}

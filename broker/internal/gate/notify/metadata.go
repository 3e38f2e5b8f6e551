//go:build linux

package notify

import (
	"os"
	"strconv"

	"golang.org/x/sys/unix"

	"sbx.example/sbx/broker/internal/gate/names"
)

// write copies a result into the caller's memory and answers. The memory is opened first and the notification checked
// afterwards: the descriptor stays with that address space, while a pid may be another process's by the time of a
// process_vm_writev(2).
func (r *request) write(addr uint64, b []byte, result int64) {
	mem, err := os.OpenFile("/proc/"+strconv.FormatUint(uint64(r.n.pid), 10)+"/mem", os.O_WRONLY, 0)
	if err != nil {
		r.s.refuse(&r.n, r.c.op, "", unix.EACCES, "the caller's memory cannot be written")
		return
	}
	defer mem.Close()
	if !idValid(r.s.fd, r.n.id) {
		return
	}
	if n, err := unix.Pwrite(int(mem.Fd()), b, int64(addr)); err != nil || n != len(b) {
		r.s.fail(r.n.id, unix.EFAULT)
		return
	}
	r.s.value(r.n.id, result)
}

// foreign refuses a result whose layout on the caller's architecture is not this process's.
func (r *request) foreign(o *object) bool {
	if r.n.arch == r.s.native {
		return false
	}
	r.s.refuse(&r.n, r.c.op, o.decided(), unix.EACCES,
		"a 32-bit program's structures are not written: grant the path before the start")
	return true
}

func (r *request) stat(o *object) {
	var st unix.Stat_t
	if r.foreign(o) {
		return
	}
	if err := unix.Fstat(o.fd, &st); err != nil {
		r.s.refuse(&r.n, "stat", o.decided(), unix.EACCES, err.Error())
		return
	}
	root := r.s.root.Load()
	st.Uid, st.Gid = root.uids.inside(st.Uid), root.gids.inside(st.Gid)
	if r.veil {
		st = unix.Stat_t{Dev: st.Dev, Ino: st.Ino, Mode: st.Mode&unix.S_IFMT | 0o555, Nlink: 1, Uid: st.Uid, Gid: st.Gid,
			Blksize: 4096}
	}
	if !r.veil && r.config(o) {
		st.Size = int64(names.ShownSize(o.fd, uint64(st.Size), nil))
	}
	r.write(r.n.args[r.c.out], statBytes(&st), 0)
}

func (r *request) statx(o *object) {
	var st unix.Statx_t
	sync := int(uint32(r.n.args[2])) & (unix.AT_STATX_FORCE_SYNC | unix.AT_STATX_DONT_SYNC)
	mask := int(uint32(r.n.args[3]))
	if mask&unix.STATX__RESERVED != 0 {
		r.s.fail(r.n.id, unix.EINVAL)
		return
	}
	if err := unix.Statx(o.fd, "", unix.AT_EMPTY_PATH|sync, mask, &st); err != nil {
		r.s.refuse(&r.n, "stat", o.decided(), unix.EACCES, err.Error())
		return
	}
	root := r.s.root.Load()
	st.Uid, st.Gid = root.uids.inside(st.Uid), root.gids.inside(st.Gid)
	st.Mask &^= unix.STATX_MNT_ID // of the broker's namespace
	st.Mnt_id = 0
	if r.veil {
		const known = unix.STATX_TYPE | unix.STATX_MODE | unix.STATX_NLINK | unix.STATX_UID | unix.STATX_GID |
			unix.STATX_INO | unix.STATX_SIZE
		st = unix.Statx_t{Mask: st.Mask & known, Dev_major: st.Dev_major, Dev_minor: st.Dev_minor, Ino: st.Ino,
			Mode: st.Mode&unix.S_IFMT | 0o555, Nlink: 1, Uid: st.Uid, Gid: st.Gid, Blksize: 4096}
	}
	if !r.veil && r.config(o) {
		st.Size = names.ShownSize(o.fd, st.Size, nil)
	}
	r.write(r.n.args[r.c.out], statxBytes(&st), 0)
}

func (r *request) statfs(o *object) {
	var st unix.Statfs_t
	if r.foreign(o) {
		return
	}
	if err := unix.Fstatfs(o.fd, &st); err != nil {
		r.s.refuse(&r.n, "stat", o.decided(), unix.EACCES, err.Error())
		return
	}
	st.Flags |= unix.ST_RDONLY | unix.ST_NOSUID | unix.ST_NODEV // as an open would have it
	r.write(r.n.args[r.c.out], statfsBytes(&st), 0)
}

// access says what an open would: nothing that is served from here can be written.
func (r *request) access(o *object) {
	mode := uint32(r.n.args[r.c.out])
	if mode&^7 != 0 {
		r.s.fail(r.n.id, unix.EINVAL)
		return
	}
	if mode&unix.W_OK != 0 {
		r.s.fail(r.n.id, unix.EACCES)
		return
	}
	var err error
	rights{r.s.caps}.without(func() {
		err = unix.Faccessat2(o.fd, "", mode, unix.AT_EMPTY_PATH)
	})
	if err != nil {
		r.s.fail(r.n.id, unix.EACCES)
		return
	}
	r.s.value(r.n.id, 0)
}

func (r *request) readlink(o *object) {
	size := int32(uint32(r.n.args[r.c.out+1]))
	if size <= 0 || o.typ != unix.S_IFLNK {
		r.s.fail(r.n.id, unix.EINVAL)
		return
	}
	var buf [maxPath]byte
	n, err := unix.Readlinkat(o.fd, "", buf[:])
	if err != nil {
		r.s.refuse(&r.n, "readlink", o.decided(), unix.EACCES, err.Error())
		return
	}
	n = min(n, int(size))
	r.write(r.n.args[r.c.out], buf[:n], int64(n))
}

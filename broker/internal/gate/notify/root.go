//go:build linux

package notify

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// identity tells objects apart, and mounts of the same object.
type identity struct {
	major, minor uint32
	ino, mount   uint64
}

func identify(fd int) (identity, uint16, error) {
	var st unix.Statx_t
	err := unix.Statx(fd, "", unix.AT_EMPTY_PATH|unix.AT_STATX_DONT_SYNC, unix.STATX_TYPE|unix.STATX_INO|
		unix.STATX_MNT_ID, &st)
	return identity{st.Dev_major, st.Dev_minor, st.Ino, st.Mnt_id}, st.Mode & unix.S_IFMT, err
}

// sandboxRoot is the root directory of the sandbox's own mount namespace, and its numbers.
type sandboxRoot struct {
	fd   int
	id   identity
	uids idMap
	gids idMap

	served []string // see Served
}

// rootFor returns the sandbox's root, taken from the first caller that can be looked at. It is used for every caller,
// also for those that made a root of their own: where the fast walk is wrong about them it lets pass what then fails.
func (s *server) rootFor(n *notif) *sandboxRoot {
	if r := s.root.Load(); r != nil {
		return r
	}
	r, err := openRoot(n.pid)
	if err != nil || !idValid(s.fd, n.id) {
		return nil
	}
	if v, ok := s.View.(Served); ok {
		r.served = v.Served()
	}
	if !s.root.CompareAndSwap(nil, r) {
		unix.Close(r.fd)
		return s.root.Load()
	}
	return r
}

func openRoot(pid uint32) (*sandboxRoot, error) {
	dir := "/proc/" + strconv.FormatUint(uint64(pid), 10)
	fd, err := unix.Open(dir+"/root", unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("opening root of process %d: %w", pid, err)
	}
	r := &sandboxRoot{fd: fd}
	if r.id, _, err = identify(fd); err == nil {
		if r.uids, err = readIDMap(dir + "/uid_map"); err == nil {
			r.gids, err = readIDMap(dir + "/gid_map")
		}
	}
	if err != nil {
		unix.Close(fd)
		return nil, fmt.Errorf("looking at process %d: %w", pid, err)
	}
	return r, nil
}

// exists walks a path inside and says how that ended.
func (r *sandboxRoot) exists(pathNUL []byte, flags, resolve uint64) syscall.Errno {
	fd, e := openPath(r.fd, pathNUL, flags, resolve|unix.RESOLVE_IN_ROOT)
	if e == 0 {
		unix.Close(fd)
	}
	return e
}

// own returns the served directory that a path without dots leads into, or "".
func own[T string | []byte](r *sandboxRoot, p T) string {
	for _, dir := range r.served {
		if len(p) > len(dir) && string(p[:len(dir)]) == dir && p[len(dir)] == '/' || string(p) == dir {
			return dir
		}
	}
	return ""
}

// open pins the object at a path inside; links on the way are refused. In a served directory it is the host's object,
// which is only looked at: it must never be handed over, because what is hidden there is hidden by the server and not
// by the mounts.
func (r *sandboxRoot) open(path string) (int, syscall.Errno) {
	if own(r, path) != "" {
		return openPath(unix.AT_FDCWD, append([]byte(path), 0), unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC,
			unix.RESOLVE_NO_SYMLINKS|unix.RESOLVE_NO_MAGICLINKS)
	}
	return openPath(r.fd, append([]byte(path), 0), unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC,
		unix.RESOLVE_IN_ROOT|unix.RESOLVE_NO_SYMLINKS|unix.RESOLVE_NO_MAGICLINKS)
}

// same says whether the caller has the root that questions are asked about. A program in a container of its own making
// has another one; what it misses there is no question for anybody.
func (r *sandboxRoot) same(pid uint32) (bool, error) {
	fd, err := unix.Open("/proc/"+strconv.FormatUint(uint64(pid), 10)+"/root", unix.O_PATH|unix.O_DIRECTORY|
		unix.O_CLOEXEC, 0)
	if err != nil {
		return false, err
	}
	defer unix.Close(fd)
	id, _, err := identify(fd)
	return err == nil && id == r.id, err
}

// base returns the directory that a relative name starts from, or "" if it is not where its name says: an injected
// directory has the name "/", a renamed or unmounted one none that can be trusted.
func (r *sandboxRoot) base(pid uint32, dir int32, foreign Foreign) string {
	link := startOf(nil, pid, dir)
	if link == nil {
		return ""
	}
	at := string(link[:len(link)-1])
	path, err := os.Readlink(at)
	if err != nil || path == "" || path[0] != '/' || strings.HasSuffix(path, " (deleted)") {
		return ""
	}
	if own(r, path) != "" {
		return path // its identity cannot be asked for from here
	}
	if foreign != nil && foreign.Over(path) != "" {
		return path // nor there, and a walk ends at its mount point
	}
	theirs, err := unix.Open(at, unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		return ""
	}
	defer unix.Close(theirs)
	ours, e := r.open(path)
	if e != 0 {
		return ""
	}
	defer unix.Close(ours)
	a, _, err1 := identify(theirs)
	b, _, err2 := identify(ours)
	if err1 == nil && a.mount == r.id.mount && err2 == nil && b.mount != a.mount {
		return path // a place that something was mounted on since; nobody inside can move it
	}
	if err1 != nil || err2 != nil || a != b {
		return ""
	}
	return path
}

//go:build linux

package repositories

import (
	"io/fs"
	"maps"
	"os"
	"path"
	"time"

	"golang.org/x/sys/unix"

	"sbx.example/sbx/broker/internal/gate/names"
	"sbx.example/sbx/broker/internal/guard"
	"sbx.example/sbx/broker/internal/host"
	"sbx.example/sbx/broker/internal/request"
	"sbx.example/sbx/broker/plan"
)

// A session may make more repositories than can be held open: many that do no harm first, so that the one that does
// would be beyond. Of those the identity is kept, and when the session has ended they are looked for.

const (
	maxBeyond = 1 << 17
	maxSearch = 20 * time.Second
)

// putBeyond notes a repository that cannot be held.
func (l *Left) putBeyond(id guard.ID) {
	if l.beyond == nil {
		l.beyond = make(map[guard.ID]bool)
	}
	if len(l.beyond) < maxBeyond {
		l.beyond[id] = true
	} else {
		l.unseen++
	}
}

// holdAnother holds a directory open beside those that are, if there may be more.
func holdAnother(are, most, dir int) (int, error) {
	if are >= most {
		return -1, unix.EMFILE
	}
	return unix.FcntlInt(uintptr(dir), unix.F_DUPFD_CLOEXEC, 3)
}

// letGo closes what is held of directories that were removed.
func (l *Left) letGo() {
	gone := func(fd int) bool {
		var st unix.Statx_t // as it is known here: a server that does not answer is not waited for
		const flags = unix.AT_EMPTY_PATH | unix.AT_STATX_DONT_SYNC
		if unix.Statx(fd, "", flags, unix.STATX_NLINK, &st) == nil && st.Nlink > 0 {
			return false
		}
		unix.Close(fd)
		return true
	}
	maps.DeleteFunc(l.repositories, func(_ guard.ID, fd int) bool { return gone(fd) })
	maps.DeleteFunc(l.workspaces, func(_ guard.ID, w *workspace) bool { return gone(w.dir) })
}

// search looks for the repositories that were not held, for some time, and gives each to found. A tree that cannot be
// read to its end counts as one that was not looked at.
func (l *Left) search(tops []string, end time.Time, found func(fd int)) {
	for _, top := range tops {
		if len(l.beyond) == 0 {
			return
		}
		fd, err := openTop(l.Foreign, top)
		if err != nil || !l.searchIn(fd, top, end, found) {
			l.unseen++
		}
	}
}

// openTop opens a directory that is looked through.
func openTop(foreign *host.Foreign, dir string) (int, error) {
	if foreign.Closed(dir) != "" {
		return -1, host.ErrForeign
	}
	return unix.Open(dir, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
}

// searchIn takes the descriptor of a directory.
func (l *Left) searchIn(fd int, top string, end time.Time, found func(fd int)) bool {
	return below(l.Foreign, fd, top, end, func(fd int, _ string, _ []fs.DirEntry) bool {
		if id, err := names.ID(fd); err == nil && l.beyond[id] {
			delete(l.beyond, id)
			found(fd)
		}
		return len(l.beyond) > 0
	}) || len(l.beyond) == 0
}

// below gives visit a directory, whose descriptor it closes, and those below it: open, with their paths and what is in
// them. It ends when that answers false, or too late. It follows no link. It says whether it has seen all.
func below(foreign *host.Foreign, fd int, at string, end time.Time,
	visit func(fd int, at string, in []fs.DirEntry) (on bool)) (all bool) {
	f := os.NewFile(uintptr(fd), "directory")
	defer f.Close()
	list, err := f.ReadDir(-1)
	if !visit(fd, at, list) {
		return false
	}
	all = err == nil
	for _, e := range list {
		if !e.IsDir() {
			continue
		}
		if time.Now().After(end) {
			return false
		}
		name := path.Join(at, e.Name())
		if foreign.Closed(name) != "" { // nor could the session write there
			continue
		}
		sub, err := unix.Openat(fd, e.Name(), unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
		all = err == nil && below(foreign, sub, name, end, visit) && all
	}
	return all
}

// Writable are the places on the host that a session could make repositories in.
func Writable(p *plan.Plan) []string {
	var out []string
	for i := range p.Mounts {
		m := &p.Mounts[i]
		writes := m.Kind == plan.Judged || m.Kind == plan.Fuse && m.Access == plan.ReadWrite
		if writes && m.Target != "/" && request.GuardedTop(p, m.Target) == m {
			out = append(out, p.OnHost(m.Target))
		}
	}
	return out
}

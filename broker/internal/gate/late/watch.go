//go:build linux

package late

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"sbx.example/sbx/broker/internal/gate/names"
	"sbx.example/sbx/broker/internal/guard"
	"sbx.example/sbx/broker/internal/host"
	"sbx.example/sbx/broker/internal/inotify"
	"sbx.example/sbx/broker/internal/secrets"
)

// Tree is a directory that is mounted natively, with all below it.
type Tree struct {
	Path    string // on the host, and inside
	Granted string // the directory that names are judged relative to
	Place   *guard.Place
	// Most is how many directories are looked at in the beginning; 0: as many as are watched at most. What lies beyond is
	// a loss that was said.
	Most int
	// Stands says whether the tree is still there inside. nil: always.
	Stands func() bool
}

// Options of Watch.
type Options struct {
	Trees []*Tree
	// Planned is when the plan began to look at them: what is in a directory that has changed since is fresh.
	Planned time.Time
	// Skip says of a directory whether its names are somebody else's to judge while something is mounted there: a mount
	// goes with what it is on, and the host may put another directory there. May be nil.
	Skip func(dir string) bool
	// Closed is the mount point of a file system that is not looked into, over a path, empty if there is none. May be nil.
	Closed func(p string) string
	// Hidden says of a path in a directory that was granted whether it is hidden, whatever it is. May be nil.
	Hidden  func(p, granted string) bool
	Secrets *secrets.Judge
	// Sockets are those that the session has bound: others are the host's, and covered like secrets.
	Sockets *guard.Made
	// Door says of the path of a socket of the host's whether it was granted. May be nil: none was.
	Door func(p string) bool
	// Linked says of a path in a directory that was granted whether it is another name of a secret. May be nil: none is.
	Linked func(p, granted string) bool
	// Making is held by the session while it makes something under the name of a secret, until that is known to be
	// its own.
	Making sync.Locker
	// Cover mounts something over what has a path, if it is on: ESTALE otherwise. Remove takes it away where it is found
	// at a path.
	Cover func(path string, dir bool, on guard.ID) (remove func(path string) error, err error)
	// Mounted says of a path inside whether something is mounted there: EINVAL otherwise.
	Mounted func(path string) error
	// Files are those of which Changed is told when the host has changed or replaced them: configurations, and what is
	// granted by itself.
	Files   []string
	Changed func(path string)
	Warn    func(string)
}

const (
	// maxDirs bounds the directories that are watched.
	maxDirs = 1 << 14
	watched = unix.IN_CREATE | unix.IN_MOVED_TO | unix.IN_CLOSE_WRITE | unix.IN_ATTRIB | unix.IN_ONLYDIR |
		unix.IN_EXCL_UNLINK
	pause    = time.Millisecond
	maxTries = 8
	// yieldEvery pauses are less than the time slice of a goroutine (gate/notify's receiver).
	yieldEvery = 4
)

// Watcher watches one session's trees. What is below is its goroutine's.
type Watcher struct {
	Options
	fd      int
	wake    int // an eventfd that ends the watch, or says that there are more trees
	mu      sync.Mutex
	more    []*Tree // guarded by mu
	closed  atomic.Bool
	ended   chan struct{}
	byWd    map[int32]dir
	configs map[int32]map[string][]string // see config
	covered map[guard.ID][]remove
	shut    map[string]guard.ID // directories that could not be looked at; which of them are covered
	full    bool                // not all is watched, and that was said
	said    map[string]bool     // warnings: a program that makes the kernel's queue run over has all looked at again
}

// remove takes the cover of one of an object's names away.
type remove = func(path string) error

// dir is a directory that is watched.
type dir struct {
	*Tree
	path  string
	place *guard.Place
}

// Watch begins to watch.
func Watch(o Options) (*Watcher, error) {
	fd, err := unix.InotifyInit1(unix.IN_NONBLOCK | unix.IN_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("watching for names of secrets: %w", err)
	}
	wake, err := unix.Eventfd(0, unix.EFD_CLOEXEC)
	if err != nil {
		unix.Close(fd)
		return nil, fmt.Errorf("watching for names of secrets: %w", err)
	}
	w := &Watcher{Options: o, fd: fd, wake: wake, ended: make(chan struct{}), byWd: map[int32]dir{},
		configs: map[int32]map[string][]string{}, covered: map[guard.ID][]remove{},
		shut: map[string]guard.ID{}, said: map[string]bool{}}
	go w.run()
	return w, nil
}

// Add has another tree watched as well.
func (w *Watcher) Add(t *Tree) {
	w.mu.Lock()
	w.more = append(w.more, t)
	w.mu.Unlock()
	w.signal()
}

func (w *Watcher) signal() { _, _ = unix.Write(w.wake, []byte{1, 0, 0, 0, 0, 0, 0, 0}) }

// added looks at the trees that were added. It says whether the watch goes on.
func (w *Watcher) added() bool {
	var b [8]byte
	_, _ = unix.Read(w.wake, b[:])
	w.mu.Lock()
	more := w.more
	w.more = nil
	w.mu.Unlock()
	for _, t := range more {
		w.Trees = append(slices.DeleteFunc(w.Trees, func(was *Tree) bool { return was.Path == t.Path }), t)
		w.look(dir{t, t.Path, t.Place}, true)
	}
	return !w.closed.Load()
}

// closing is how long Close waits.
const closing = 2 * time.Second

// Close ends the watch, and waits until it has, but for one that hangs in a file system which does not answer. What
// fails meanwhile fails because the session is over: no warning.
func (w *Watcher) Close() {
	w.closed.Store(true)
	w.signal()
	select {
	case <-w.ended:
	case <-time.After(closing):
		return
	}
	_ = inotify.Close(w.fd, func() error { return unix.Close(w.fd) })
	unix.Close(w.wake)
}

func (w *Watcher) warn(text string) {
	if !w.closed.Load() && !w.said[text] {
		w.said[text] = true
		w.Warn(text)
	}
}

// run is a thread of its own: the runtime's poller would be woken by each event, and whoever works in the tree would
// wait for that.
func (w *Watcher) run() {
	runtime.LockOSThread()
	defer close(w.ended)
	w.all(false)
	buf := make([]byte, inotify.Room)
	fds := []unix.PollFd{{Fd: int32(w.fd), Events: unix.POLLIN}, {Fd: int32(w.wake), Events: unix.POLLIN}}
	for times := 1; ; times++ {
		if times%yieldEvery == 0 {
			runtime.Gosched()
		}
		if _, err := unix.Poll(fds, -1); err != nil && err != unix.EINTR || fds[1].Revents != 0 && !w.added() {
			return
		}
		n, _ := unix.Read(w.fd, buf)
		if !w.events(buf[:max(n, 0)]) { // most of what happens is the session's own work, which is not to wait for this
			_ = unix.Nanosleep(&unix.Timespec{Nsec: int64(pause)}, nil)
		}
	}
}

// events says whether one was about a name of a secret.
func (w *Watcher) events(b []byte) (found bool) {
	for e := range inotify.Events(b) {
		found = w.event(e.Watch, e.Mask, e.Name) || found
	}
	return found
}

// all looks at all there is; fresh as in look.
func (w *Watcher) all(fresh bool) {
	for _, t := range w.Trees {
		w.look(dir{t, t.Path, t.Place}, fresh)
	}
	for _, p := range w.Files {
		w.config(p)
	}
}

// watch watches the directory behind a descriptor.
func (w *Watcher) watch(fd int) (int, error) {
	return unix.InotifyAddWatch(w.fd, names.FdPath(fd), watched)
}

// event says whether it was about a name of a secret.
func (w *Watcher) event(wd int32, mask uint32, name string) bool {
	d, ok := w.byWd[wd]
	switch {
	case mask&unix.IN_Q_OVERFLOW != 0: // something has happened that was not told
		w.all(true)
	case mask&unix.IN_IGNORED != 0:
		delete(w.byWd, wd)
		delete(w.configs, wd)
	case len(w.configs[wd][name]) > 0:
		for _, p := range w.configs[wd][name] {
			w.config(p)
		}
		if ok { // a tree's directory
			w.one(d, name, false, false)
		}
		return true
	case ok && mask&unix.IN_ATTRIB != 0:
		w.changed(d, name)
	case ok && name != "":
		if below, ok := w.one(d, name, mask&unix.IN_ISDIR != 0, mask&unix.IN_CLOSE_WRITE == 0); ok {
			w.look(below, true)
		}
		return d.place.Rule(name, guard.ByHost).Secret != nil
	}
	return false
}

// look watches a directory and looks at each name in it, and below. What is not fresh the plan has judged.
func (w *Watcher) look(top dir, fresh bool) {
	left := top.Most
	for queue := []dir{top}; len(queue) > 0; queue = queue[1:] {
		if left--; left == 0 {
			return
		}
		list, changed, ok := w.add(queue[0])
		if !ok {
			continue
		}
		for _, e := range list {
			if below, ok := w.one(queue[0], e.Name(), e.IsDir(), fresh || changed || e.Type() == os.ModeSocket); ok {
				queue = append(queue, below)
			}
		}
	}
}

// add watches a directory and lists it, and says whether it has changed since Planned. That no link is on the way is
// seen when it is opened.
func (w *Watcher) add(d dir) (list []os.DirEntry, changed, ok bool) {
	fd, err := host.OpenPlain(d.path, unix.O_RDONLY|unix.O_DIRECTORY)
	if err != nil {
		w.keptOut(d, err)
		return nil, false, false
	}
	f := os.NewFile(uintptr(fd), d.path)
	defer f.Close()
	wd, err := -1, error(unix.ENOSPC)
	if len(w.byWd) < maxDirs {
		wd, err = w.watch(fd)
	}
	if err == nil {
		w.byWd[int32(wd)] = d
	} else if !w.full && (err == unix.ENOSPC || err == unix.ENOMEM) {
		w.full = true
		w.warn("not every directory can be watched: secrets that the host makes in " + d.path +
			" and further ones while the session runs are not hidden")
	}
	w.letIn(d.path)
	list, _ = f.ReadDir(-1)
	var st unix.Stat_t
	err = unix.Fstat(fd, &st) // a program may say when a directory was modified, and not when it was changed
	return list, err != nil || !time.Unix(st.Ctim.Unix()).Before(w.Planned), true
}

// one looks at one name, which may be fresh. It returns the directory that has it, if names in that are to be looked
// at.
func (w *Watcher) one(d dir, name string, isDir, fresh bool) (dir, bool) {
	p := d.path + "/" + name
	if isDir && w.Closed != nil && w.Closed(p) != "" {
		return dir{}, false
	}
	hidden := false
	secret := d.place.Rule(name, guard.ByHost).Secret != nil
	if secret || w.hides(d, p) || fresh && !isDir && w.isOdd(d, p) {
		hidden = w.judge(d, p, secret)
	}
	w.repository(d, name, isDir)
	if !isDir || hidden || guard.Dependency(name) || guard.Fold(name) == ".git" || w.skips(p) {
		return dir{}, false
	}
	return dir{d.Tree, p, d.place.Below(name)}, true
}

// skips says whether a directory is one of Skip's and has its mount.
func (w *Watcher) skips(p string) bool {
	return w.Skip != nil && w.Skip(p) && !errors.Is(w.Mounted(p), unix.EINVAL)
}

func (w *Watcher) hides(d dir, p string) bool { return w.Hidden != nil && w.Hidden(p, d.Granted) }

// judge covers what has the name of a secret if it is one, and says so. The program may exchange what has the path at
// any moment: what is covered is what was judged, or nothing, and then there is another event.
func (w *Watcher) judge(d dir, p string, secret bool) bool {
	var failed error
	for range maxTries {
		if d.Stands != nil && !d.Stands() {
			return false
		}
		was, hidden := w.find(d, p, secret)
		if !hidden {
			w.uncover(p, was.ID)
			return false
		}
		if was.typ == host.Link { // what it leads to is judged by its own name
			return true
		}
		if failed = w.cover(p, was); failed == nil {
			return true
		} // who mounts was killed, perhaps: the next try has another one
	}
	if !host.NotExist(failed) {
		w.warn("hiding " + p + ", which the host has made: " + failed.Error())
	}
	return true
}

// standing is what has a name.
type standing struct {
	guard.ID
	typ host.Type
}

// find judges what has a name. What is reached by a link only has another one.
func (w *Watcher) find(d dir, p string, secret bool) (standing, bool) {
	fd, err := host.OpenPlain(p, unix.O_PATH|unix.O_NOFOLLOW)
	if err != nil {
		w.keptOut(d, err)
		return standing{}, false
	}
	defer unix.Close(fd)
	w.Making.Lock()
	defer w.Making.Unlock()
	f, st := names.Keeper{Judge: w.Secrets}.Finding(names.Name{Top: d.Granted,
		Path: func() string { return strings.TrimPrefix(p, d.Granted+"/") }}, fd)
	is := standing{guard.ID{Dev: st.Dev, Ino: st.Ino, Born: st.Born}, st.Type}
	return is, secret && f.Hidden || w.hides(d, p) || w.linked(d, p) ||
		is.typ == host.Socket && !w.Sockets.Has(is.ID) && (w.Door == nil || !w.Door(p))
}

// cover covers an object at a path, unless something is mounted there.
func (w *Watcher) cover(p string, is standing) error {
	r, err := w.Cover(p, is.typ == host.Dir, is.ID)
	if err == nil {
		w.covered[is.ID] = append(w.covered[is.ID], r)
	} else if errors.Is(err, unix.ESTALE) && w.Mounted(p) == nil {
		return nil
	}
	return err
}

// uncover gives an object back that is no secret any more.
func (w *Watcher) uncover(p string, id guard.ID) {
	left := slices.DeleteFunc(w.covered[id], func(r remove) bool { return r(p) == nil })
	if w.covered[id] = left; len(left) == 0 {
		delete(w.covered, id)
	}
}

// isOdd is a first look at each file that is made: what it finds is judged.
func (w *Watcher) isOdd(d dir, p string) bool {
	st, err := host.FS{}.Lstat(p)
	return err == nil && (st.Type == host.Socket || st.Nlink > 1 && w.linked(d, p))
}

func (w *Watcher) linked(d dir, p string) bool { return w.Linked != nil && w.Linked(p, d.Granted) }

//go:build linux

package repositories

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"sbx.example/sbx/broker/internal/gate/names"
	"sbx.example/sbx/broker/internal/guard"
	"sbx.example/sbx/broker/internal/host"
	"sbx.example/sbx/broker/internal/planner"
)

// Links keep git outside from entering, by itself, a repository that the session made: an index that would name one
// is not put in place, and what an index names is not the session's own, whatever it makes there.
type Links struct {
	Session *guard.Session
	Granted guard.Granted
	Made    func() bool // whether the session has made a repository anywhere
	Foreign *host.Foreign
	Trees   []string // the directories of the host that the session can write to
	mu      sync.Mutex
	seen    map[guard.ID]bool // directories above what the session made, with those above them
}

// Above tells the session of what the indexes of the repositories above a directory name.
func (l *Links) Above(dir string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for {
		id := identity(unix.AT_FDCWD, dir)
		if l.seen[id] {
			return
		}
		if id != (guard.ID{}) {
			remember(&l.seen, id, true, maxLookedThrough)
		}
		l.partsOf(dir)
		up := path.Dir(dir)
		if up == dir {
			return
		}
		dir = up
	}
}

// partsOf tells of the index that a work tree at top has, and of the one that a repository's own directory there has: a
// submodule's, say, which lies far from its work tree.
func (l *Links) partsOf(top string) {
	if git := repositoryOf(top); git != "" {
		l.indexOf(git, top)
	}
	if _, err := (host.FS{}).Stamp(top + "/HEAD"); err == nil {
		trees, _ := l.workTrees(top)
		for _, tree := range trees {
			l.indexOf(top, tree)
		}
	}
}

// repositoryOf is the repository's directory of a work tree, "" if there is none.
func repositoryOf(top string) string {
	git := top + "/.git"
	if st, err := (host.FS{}).Stamp(git); err != nil {
		return ""
	} else if st.Type != host.File {
		return git
	}
	text, _ := host.FS{}.Peek(git, 0, planner.MaxConfigSize)
	return guard.LinkedDir(top, text)
}

// indexOf tells the session of what the index of a repository names in a work tree.
func (l *Links) indexOf(git, top string) {
	list, err := named(git)
	for _, name := range list {
		_, e := l.expect(top, name)
		err = errors.Join(err, e)
	}
	if err != nil {
		l.Session.ExpectAll()
	}
}

// named are the places that the index of a repository names.
func named(git string) (list []string, err error) {
	size, err := idSize(git)
	files, e := indexes(git)
	err = errors.Join(err, e)
	for _, file := range files {
		text, e := read(file)
		found, e2 := guard.IndexLinks(text, size)
		list, err = append(list, found.Places()...), errors.Join(err, e, e2)
	}
	return list, err
}

// indexes are the files with an index in a repository's directory: it may be in two.
func indexes(git string) (files []string, err error) {
	list, err := os.ReadDir(git)
	for _, e := range list {
		if e.Name() == "index" || strings.HasPrefix(e.Name(), "sharedindex.") {
			files = append(files, git+"/"+e.Name())
		}
	}
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ENOTDIR) {
		err = nil
	}
	return files, err
}

// Indexed says whether a repository has an index, or one of its worktrees may have.
func Indexed(git string) bool {
	files, err := indexes(git)
	trees, e := os.ReadDir(git + "/worktrees")
	return len(files) > 0 || err != nil || len(trees) > 0 || e != nil && !errors.Is(e, fs.ErrNotExist)
}

// idSize is the length of object ids in the index of a repository's directory. A worktree has the format of the
// repository that it belongs to, also while nothing says so in it.
func idSize(git string) (int, error) {
	dirs := []string{git}
	if path.Base(path.Dir(git)) == "worktrees" {
		dirs = append(dirs, path.Join(git, "../.."))
	}
	if to := strings.TrimRight(string(readAll(git+"/commondir")), "\r\n"); path.IsAbs(to) {
		dirs = append(dirs, to)
	} else if to != "" {
		dirs = append(dirs, path.Join(git, to))
	}
	var configs [][]byte
	for _, dir := range dirs {
		text, err := read(dir + "/config")
		if err == nil {
			configs = append(configs, text)
		} else if !errors.Is(err, fs.ErrNotExist) {
			return 0, err
		}
	}
	return guard.IDSize(configs...)
}

var errNoFile = errors.New("it is no file")

// readAll is read where what cannot be read is as good as nothing.
func readAll(file string) []byte {
	text, _ := read(file)
	return text
}

// read reads a file; a larger index is not understood.
func read(file string) ([]byte, error) {
	st, err := host.FS{}.Stamp(file)
	if err != nil || st.Type != host.File {
		return nil, cmp.Or(err, errNoFile)
	}
	return host.FS{}.Peek(file, 0, int(min(st.Size, guard.MaxIndex)))
}

// expect has what the session makes at a place, or made there, guarded like what was there. It answers where git may
// enter a repository by that.
func (l *Links) expect(top, name string) (at []string, err error) {
	if dir, all := strings.CutSuffix(name, "/"); all {
		l.expectAt(top, dir)
		return l.expectBelow(top, dir)
	}
	l.expectAt(top, name)
	return []string{name}, nil
}

// expectBelow is expect for all that is in a directory. Each is told to the session before it is listed, so that what
// comes into it meanwhile is either found or judged by that.
func (l *Links) expectBelow(top, name string) (at []string, err error) {
	if l.Foreign.Closed(path.Join(top, name)) != "" {
		return nil, host.ErrForeign
	}
	dir, err := openTree(top, name)
	if isNone(err) {
		return nil, nil // what comes is guarded
	}
	if err != nil {
		return nil, err
	}
	defer unix.Close(dir)
	l.Session.Demote([]guard.ID{identity(dir, "")})
	fd, err := unix.Openat(dir, ".", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	f := os.NewFile(uintptr(fd), name)
	list, err := f.ReadDir(-1)
	f.Close()
	for _, e := range list {
		if e.Name() == ".git" {
			at = append(at, name)
		}
		if e.IsDir() {
			found, e := l.expectBelow(top, path.Join(name, e.Name()))
			at, err = append(at, found...), errors.Join(err, e)
		}
	}
	return at, err
}

// expectAt is expect for one place.
func (l *Links) expectAt(top, name string) {
	fd, err := unix.Open(top, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	for part := range strings.SplitSeq(name, "/") {
		if err != nil {
			return
		}
		above := fd
		if fd, err = unix.Openat(above, part, held, 0); err != nil {
			l.Session.Expect(identity(above, ""), part)
		} else if id := identity(fd, ""); l.Session.Own(id) {
			l.Session.Demote([]guard.ID{id})
		} else {
			l.Session.Expect(identity(above, ""), part)
		}
		unix.Close(above)
	}
	if err == nil {
		unix.Close(fd)
	}
}

const held = unix.O_PATH | unix.O_DIRECTORY | unix.O_NOFOLLOW | unix.O_CLOEXEC

func identity(dir int, name string) guard.ID {
	id, _ := names.IDAt(dir, name)
	return id
}

// errGitlink is the reason why an index is not put in place.
var errGitlink = errors.New("git would enter a repository by itself that may run something")

// Check says whether an index may be replaced by next.
func (l *Links) Check(file string, old, next []byte) error {
	size, err := idSize(path.Dir(file))
	if err != nil {
		return fmt.Errorf("finding the format of objects: %w", err)
	}
	found, err := guard.NewLinks(old, next, size)
	if err != nil || len(found) == 0 {
		return err
	}
	trees, sure := l.workTrees(path.Dir(file))
	linked := linkedTree(path.Dir(file))
	if linked {
		var others []string
		others, sure = l.leading(path.Dir(file))
		trees = append(trees, others...)
	}
	if !sure && (!linked || l.Made()) { // it may be used at another place than it says
		var known guard.Links
		if linked {
			known, _ = guard.IndexLinks(readAll(path.Join(path.Dir(file), "../../index")), size)
		}
		for _, name := range found {
			if !slices.Contains(known.Gitlinks, name) {
				return fmt.Errorf("%w: %s", errGitlink, name)
			}
		}
	}
	for _, top := range trees {
		acts, err := l.enters(top, found, maxNested)
		if err == nil && acts != "" {
			err = fmt.Errorf("%w: %s", errGitlink, acts)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// workTrees are the places at which git may use a repository's directory; sure: there is no other.
func (l *Links) workTrees(git string) (trees []string, sure bool) {
	trees = placesSet(git)
	switch {
	case linkedTree(git):
		if file := strings.TrimRight(string(readAll(git+"/gitdir")), "\n"); file != "" {
			trees = append(trees, path.Dir(from(git, file)))
		}
		return append(trees, path.Dir(git)), false
	case path.Base(git) == ".git" && !strings.Contains(path.Dir(git)+"/", "/.git/"):
		return append(trees, path.Dir(git)), true
	case len(trees) > 0: // a submodule's
		return trees, true
	}
	return []string{path.Dir(git)}, false // a bare repository, to which a file beside it may lead
}

// placesSet are the work trees that a repository's settings name. Those of a linked worktree are its own alone.
func placesSet(git string) (trees []string) {
	files := []string{"/config", "/config.worktree"}
	if linkedTree(git) {
		files = files[1:]
	}
	for _, file := range files {
		if to := guard.WorkTreeOf(readAll(git + file)); to != "" {
			trees = append(trees, from(git, to))
		}
	}
	return trees
}

// from is where a name leads from a directory.
func from(dir, name string) string {
	if path.IsAbs(name) {
		return path.Clean(name)
	}
	return path.Join(dir, name)
}

// leading are the directories with a .git file that leads to a repository's directory; all: there is no other.
func (l *Links) leading(git string) (dirs []string, all bool) {
	all, end := true, time.Now().Add(maxLooked)
	id := identity(unix.AT_FDCWD, git)
	for _, top := range l.Trees {
		fd, err := openTop(l.Foreign, top)
		if err != nil {
			return nil, false
		}
		all = below(l.Foreign, fd, top, end, func(fd int, at string, in []fs.DirEntry) bool {
			for _, e := range in {
				if guard.Fold(e.Name()) != ".git" || !e.Type().IsRegular() {
					continue
				}
				text, err := readIn(fd, e.Name())
				if err != nil || identity(unix.AT_FDCWD, guard.LinkedDir(at, text)) == id {
					dirs = append(dirs, at)
				}
			}
			return true
		}) && all
	}
	return dirs, all
}

// maxLooked bounds how long the others are looked for while the program waits.
const maxLooked = 2 * time.Second

// linkedTree says whether git takes a directory for that of a linked worktree, which has settings elsewhere.
func linkedTree(git string) bool {
	_, err := host.FS{}.Stamp(git + "/commondir")
	return path.Base(path.Dir(git)) == "worktrees" || !errors.Is(err, fs.ErrNotExist)
}

// openTree opens a directory below another, over no link.
func openTree(top, name string) (int, error) {
	dir, err := unix.Open(top, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return -1, err
	}
	defer unix.Close(dir)
	return openBelow(dir, name, held)
}

// openBelow opens a directory below an open one, over no link.
func openBelow(dir int, name string, flags uint64) (int, error) {
	return unix.Openat2(dir, name, &unix.OpenHow{Flags: flags | unix.O_DIRECTORY | unix.O_CLOEXEC,
		Resolve: unix.RESOLVE_BENEATH | unix.RESOLVE_NO_SYMLINKS})
}

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
	Trees   []string    // the directories of the host that the session can write to
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
	if _, err := l.named(git, top); err != nil {
		l.Session.ExpectAll()
	}
}

// Linked says whether git may use a repository's directory for the work in another one.
func (l *Links) Linked(dir, git string) bool {
	acts, err := l.named(git, dir)
	return err == nil && acts == ""
}

// named is expect for all that the index of a repository names in a work tree.
func (l *Links) named(git, top string) (acts string, err error) {
	size, err := idSize(git)
	files, e := indexes(git)
	err = errors.Join(err, e)
	for _, file := range files {
		found, e := guard.IndexLinks(readAll(file), size)
		err = errors.Join(err, e)
		for _, name := range found.Places() {
			a, e := l.expect(top, name)
			acts, err = cmp.Or(acts, a), errors.Join(err, e)
		}
	}
	return acts, err
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
		st, err := host.FS{}.Stamp(dir + "/config")
		switch {
		case errors.Is(err, fs.ErrNotExist):
		case err != nil:
			return 0, err
		case st.Type != host.File:
			return 0, errFormat
		default:
			configs = append(configs, readAll(dir+"/config"))
		}
	}
	return guard.IDSize(configs...)
}

var errFormat = errors.New("the repository's configuration is no file")

func readAll(file string) []byte {
	st, err := host.FS{}.Stamp(file)
	if err != nil || st.Type != host.File {
		return nil
	}
	text, _ := host.FS{}.Peek(file, 0, int(min(st.Size, guard.MaxIndex))) // a larger index is not understood
	return text
}

// expect has what the session makes at a place, or made there, guarded like what was there. It answers where git would
// enter a repository by that which runs something.
func (l *Links) expect(top, name string) (acts string, err error) {
	if dir, all := strings.CutSuffix(name, "/"); all {
		l.expectAt(top, dir)
		return l.expectBelow(top, dir)
	}
	l.expectAt(top, name)
	if l.acts(top, name) {
		return name, nil
	}
	return "", nil
}

// expectBelow is expect for all that is in a directory. Each is told to the session before it is listed, so that what
// comes into it meanwhile is either found or judged by that.
func (l *Links) expectBelow(top, name string) (acts string, err error) {
	dir, err := openTree(top, name)
	if err == unix.ENOENT || err == unix.ENOTDIR || err == unix.ELOOP {
		return "", nil // there is none, and what comes is guarded
	}
	if err != nil {
		return "", err
	}
	defer unix.Close(dir)
	l.Session.Demote([]guard.ID{identity(dir, "")})
	fd, err := unix.Openat(dir, ".", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return "", err
	}
	f := os.NewFile(uintptr(fd), name)
	list, err := f.ReadDir(-1)
	f.Close()
	for _, e := range list {
		if e.Name() == ".git" && l.acts(top, name) {
			acts = name
		}
		if e.IsDir() {
			found, e := l.expectBelow(top, path.Join(name, e.Name()))
			acts, err = cmp.Or(acts, found), errors.Join(err, e)
		}
	}
	return acts, err
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
	st, _ := host.StampOf(dir, name)
	return guard.ID{Dev: st.Dev, Ino: st.Ino, Born: st.Born}
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
		for _, name := range found {
			switch acts, err := l.expect(top, name); {
			case err != nil:
				return fmt.Errorf("looking through %s: %w", path.Join(top, name), err)
			case acts != "":
				return fmt.Errorf("%w: %s", errGitlink, path.Join(top, acts))
			}
		}
	}
	return nil
}

// workTrees are the places at which git may use a repository's directory; sure: there is no other.
func (l *Links) workTrees(git string) (trees []string, sure bool) {
	add := func(to, dir string) {
		if to = strings.TrimRight(to, "\n"); to != "" && !path.IsAbs(to) {
			to = path.Join(dir, to)
		}
		if to != "" && !slices.Contains(trees, path.Clean(to)) {
			trees = append(trees, path.Clean(to))
		}
	}
	add(guard.WorkTreeOf(readAll(git+"/config")), git)
	add(guard.WorkTreeOf(readAll(git+"/config.worktree")), git)
	if linkedTree(git) {
		add(path.Dir(string(readAll(git+"/gitdir"))), git)
		return trees, false
	}
	if path.Base(git) == ".git" {
		add("..", git)
		return trees, true
	}
	if len(trees) > 0 { // a submodule's
		return trees, true
	}
	add("..", git) // a bare repository, to which a file beside it may lead
	return trees, false
}

// leading are the directories with a .git file that leads to a repository's directory; all: there is no other.
func (l *Links) leading(git string) (dirs []string, all bool) {
	all, end := true, time.Now().Add(maxLooked)
	id := identity(unix.AT_FDCWD, git)
	for _, top := range l.Trees {
		fd, err := unix.Open(top, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
		if err != nil {
			return nil, false
		}
		all = below(fd, top, end, func(fd int, at string, in []fs.DirEntry) bool {
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

// linkedTree says whether a directory is that of a linked worktree in a repository's.
func linkedTree(git string) bool {
	return path.Base(path.Dir(git)) == "worktrees" && readAll(git+"/gitdir") != nil
}

// acts says whether git would enter a repository at name, below a work tree, that the session made, or that is set up
// to run something.
func (l *Links) acts(top, name string) bool {
	dir, err := openTree(top, name)
	if err != nil {
		return false // there is none, and what comes is guarded
	}
	defer unix.Close(dir)
	var st unix.Stat_t
	err = unix.Fstatat(dir, ".git", &st, unix.AT_SYMLINK_NOFOLLOW)
	switch {
	case err != nil:
		return false
	case st.Mode&unix.S_IFMT == unix.S_IFREG:
		text, err := readIn(dir, ".git")
		return err != nil || !names.Leads(l.Granted, path.Join(top, name, ".git"), text, l.Session)
	case st.Mode&unix.S_IFMT != unix.S_IFDIR:
		return true
	}
	git, err := unix.Openat(dir, ".git", held, 0)
	if err != nil {
		return true
	}
	defer unix.Close(git)
	if l.Session.Own(identity(git, "")) {
		return true
	}
	for _, file := range configsOf() {
		if len(settingsIn(git, ".git", file)) > 0 {
			return true
		}
	}
	elsewhere := unix.Fstatat(git, "commondir", &st, unix.AT_SYMLINK_NOFOLLOW) == nil
	return elsewhere || len(hooksIn(git)) > 0
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

//go:build linux

package repositories

import (
	"fmt"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"sbx.example/sbx/broker/internal/guard"
	"sbx.example/sbx/broker/internal/host"
	"sbx.example/sbx/broker/internal/quoting"
	"sbx.example/sbx/broker/plan"
)

// Bounds of what is remembered of a session, and looked through at its end.
const (
	maxMadeRepositories = 64
	maxWorkspaces       = 64
	maxToldChanges      = 12
	maxLookedThrough    = 100_000
)

// Left is what a session left that somebody may run outside: told when it ends. It is the guard.Witness of the
// session. The zero value is ready.
type Left struct {
	Foreign      *host.Foreign
	mu           sync.Mutex
	Began        time.Time          // when the session did; what has changed since is its own
	changed      map[place]changing // build files and the like
	held         int                // of their directories
	repositories map[guard.ID]int
	workspaces   map[guard.ID]*workspace
	opened       map[string]*guard.Judge // of directories that answers let be written
	unopened     bool                    // there were more
	unheld       int                     // names in directories that were not held any more
	beyond       map[guard.ID]bool       // repositories beyond maxMadeRepositories, which are not held
	unseen       int                     // and those, or trees, that were not looked at
}

// workspace is a directory in which the session made names that editors, shells and agents act upon. It is held: it
// may be moved later.
type workspace struct {
	dir   int
	names []string
}

// remember notes a name, unless most of them are noted already.
func remember[K comparable, T any](set *map[K]T, name K, as T, most int) {
	if *set == nil {
		*set = make(map[K]T)
	}
	if len(*set) < most {
		(*set)[name] = as
	}
}

// Open notes a directory that an answer lets be written.
func (l *Left) Open(p string, judge *guard.Judge) {
	l.mu.Lock()
	defer l.mu.Unlock()
	remember(&l.opened, p, judge, maxWorkspaces)
	l.unopened = l.unopened || l.opened[p] == nil
}

// Repository notes a directory that the session makes a repository of, and holds it.
func (l *Left) Repository(id guard.ID, dir int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.repositories == nil {
		l.repositories = make(map[guard.ID]int)
	}
	if _, ok := l.repositories[id]; ok {
		return
	}
	if len(l.repositories) >= maxMadeRepositories {
		l.letGo()
	}
	if fd, err := holdAnother(len(l.repositories), maxMadeRepositories, dir); err == nil {
		l.repositories[id] = fd
	} else {
		l.putBeyond(id)
	}
}

// AnyMade says whether the session made a repository.
func (l *Left) AnyMade() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.repositories) > 0 || len(l.beyond) > 0 || l.unseen > 0
}

// Workspace notes a name in a directory of a repository that the session made.
func (l *Left) Workspace(id guard.ID, dir int, name string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	w := l.workspaces[id]
	if w == nil && len(l.workspaces) >= maxWorkspaces {
		l.letGo()
	}
	if w == nil {
		if fd, err := holdAnother(len(l.workspaces), maxWorkspaces, dir); err == nil {
			w = &workspace{dir: fd}
		}
	}
	switch {
	case w == nil || len(w.names) >= maxToldChanges && !slices.Contains(w.names, name):
		l.unheld++
		return
	case !slices.Contains(w.names, name):
		w.names = append(w.names, name)
	}
	if l.workspaces == nil {
		l.workspaces = make(map[guard.ID]*workspace)
	}
	l.workspaces[id] = w
}

// nameOf is the path of a directory that is held. What the session was granted is held through a copy of its mount, of
// which the kernel says only what lies below.
func nameOf(p *plan.Plan, fd int) (string, error) {
	name, err := os.Readlink("/proc/self/fd/" + strconv.Itoa(fd))
	if err != nil || isAt(name, fd) {
		return name, err
	}
	for i := range p.Mounts {
		if whole := path.Join(p.Mounts[i].Target, name); isAt(whole, fd) {
			return whole, nil
		}
	}
	return name, nil
}

func isAt(name string, fd int) bool {
	var st, held unix.Stat_t
	return unix.Lstat(name, &st) == nil && unix.Fstat(fd, &held) == nil && st.Dev == held.Dev && st.Ino == held.Ino
}

// inWorkspaces says which of those names are there still.
func (l *Left) inWorkspaces(p *plan.Plan) []string {
	var found []string
	for _, w := range l.workspaces {
		var st unix.Stat_t
		for _, name := range w.names {
			dir, err := nameOf(p, w.dir)
			if err == nil && unix.Fstatat(w.dir, name, &st, unix.AT_SYMLINK_NOFOLLOW) == nil {
				found = append(found, path.Join(dir, name))
			}
		}
		unix.Close(w.dir)
	}
	l.workspaces = nil
	slices.Sort(found)
	const why = ": editors, shells, agents or version control act upon it where somebody works there"
	switch {
	case len(found) > 0:
		return []string{"made: " + told(found, l.unheld) + why}
	case l.unheld > 0: // they may be there still
		return []string{"made: names in directories that were not looked at" + why}
	}
	return nil
}

// told names the first of a list, and how many more there are.
func told(files []string, more int) string {
	if n := len(files) - maxToldChanges; n > 0 {
		files, more = files[:maxToldChanges], more+n
	}
	if more == 0 {
		return strings.Join(quoting.All(files), ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(quoting.All(files), ", "), more)
}

// Lines say what is left, and make repositories harmless if that is wished.
func (l *Left) Lines(p *plan.Plan, neutralise bool) []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	var out []string
	held := slices.SortedFunc(maps.Values(l.repositories), func(a, b int) int { // a repository before what lies in it
		one, _ := nameOf(p, a)
		other, _ := nameOf(p, b)
		return strings.Compare(one, other)
	})
	for _, fd := range held {
		out = append(out, l.made(p, fd, neutralise)...)
	}
	for _, fd := range held {
		unix.Close(fd)
	}
	l.repositories = nil
	l.search(append(Writable(p), slices.Collect(maps.Keys(l.opened))...), time.Now().Add(maxSearch), func(fd int) {
		out = append(out, l.made(p, fd, neutralise)...)
	})
	if l.unseen > 0 {
		out = append(out, "made: more repositories, which were not looked at: git may run what the session put there")
	}
	slices.Sort(out)
	out = slices.Concat(out, l.inWorkspaces(p), l.rebases(p), l.inOpened())
	files := l.inChanged(p)
	if slices.Sort(files); len(files) > 0 {
		out = append(out, "changed: "+told(slices.Compact(files), 0)+": what you build or run next runs what is in there")
	}
	return out
}

// rebases tells of one that was begun, or changed, and runs commands when somebody continues it.
func (l *Left) rebases(p *plan.Plan) []string {
	var out []string
	for _, top := range Writable(p) {
		for _, todo := range todosIn(top) {
			info, err := os.Lstat(todo)
			if err != nil || !info.Mode().IsRegular() || !changedSince(info, l.Began) {
				continue
			}
			text, err := host.FS{}.Peek(todo, 0, 1<<20)
			if err != nil || hasCommand(string(text)) {
				out = append(out, "left: "+quoting.Quote(todo)+" names commands that git rebase --continue runs")
			}
		}
	}
	return out
}

// todosIn are the lists of a rebase in a repository's work tree or directory, its worktrees and submodules.
func todosIn(top string) []string {
	var out []string
	for _, dir := range [...]string{"/.git", "", "/.git/worktrees/*", "/.git/modules/*", "/worktrees/*", "/modules/*"} {
		list, _ := filepath.Glob(guard.Literal(top) + dir + "/rebase-merge/git-rebase-todo")
		out = append(out, list...)
	}
	return out
}

func hasCommand(todo string) bool {
	for line := range strings.Lines(todo) {
		if words := strings.Fields(line); len(words) > 0 && (words[0] == "exec" || words[0] == "x") {
			return true
		}
	}
	return false
}

// inOpened looks through the directories that answers let be written for guarded names that came while the session ran.
func (l *Left) inOpened() []string {
	var out []string
	left := maxLookedThrough
	for dir, judge := range l.opened {
		out = l.look(dir, judge.Root(), &left, out)
	}
	slices.Sort(out)
	if out = slices.Compact(out); left < 0 || l.unopened {
		out = append(out, "made: guarded names in what answers let be written were not all looked for")
	}
	return out
}

func (l *Left) look(dir string, at *guard.Place, left *int, out []string) []string {
	if l.Foreign.Closed(dir) != "" {
		l.unopened = true
		return out
	}
	list, err := os.ReadDir(dir)
	if *left -= len(list); err != nil || *left < 0 {
		return out
	}
	for _, e := range list {
		p := path.Join(dir, e.Name())
		v := at.Rule(e.Name(), guard.ByHost)
		if v.Action != guard.Free {
			if info, err := e.Info(); err == nil && changedSince(info, l.Began) {
				out = append(out, "made: "+quoting.Quote(p)+": "+v.Why)
			}
			continue
		}
		if e.IsDir() {
			out = l.look(p, at.Below(e.Name()), left, out)
		}
	}
	return out
}

func changedSince(info os.FileInfo, t time.Time) bool {
	st, ok := info.Sys().(*syscall.Stat_t)
	return !ok || !time.Unix(st.Ctim.Unix()).Before(t)
}

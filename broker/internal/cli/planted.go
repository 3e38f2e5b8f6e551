package cli

import (
	"fmt"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"sbx/broker/internal/guard"
	"sbx/broker/internal/host"
	"sbx/broker/internal/quoting"
	"sbx/broker/internal/request"
	"sbx/shared/plan"
)

// Bounds of what is remembered of a session, and looked through at its end.
const (
	maxMadeRepositories = 64
	maxWorkspaces       = 64
	maxToldChanges      = 12
	maxLookedThrough    = 100_000
)

// planted is what a session left that somebody may run outside: told when it ends. It is the guard.Witness of the
// session. The zero value is ready.
type planted struct {
	mu           sync.Mutex
	began        time.Time
	changed      map[string]bool // build files and the like, absolute
	repositories map[guard.ID]int
	workspaces   map[guard.ID]*workspace
	opened       map[string]bool // directories that answers let be written
	unheld       int             // names in directories that were not held any more
}

// workspace is a directory in which the session made names that editors, shells and agents act upon. It is held: it
// may be moved later.
type workspace struct {
	dir   int
	names []string
}

// Changed notes that a file which people run by a build was changed.
func (l *planted) Changed(p string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.changed == nil {
		l.changed = make(map[string]bool)
	}
	if len(l.changed) < maxLookedThrough {
		l.changed[p] = true
	}
}

// open notes a directory that an answer lets be written.
func (l *planted) open(p string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.opened == nil {
		l.opened = make(map[string]bool)
	}
	if len(l.opened) < maxWorkspaces {
		l.opened[p] = true
	}
}

// Repository notes a directory that the session makes a repository of, and holds it.
func (l *planted) Repository(id guard.ID, dir int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.repositories == nil {
		l.repositories = make(map[guard.ID]int)
	}
	if _, ok := l.repositories[id]; ok || len(l.repositories) >= maxMadeRepositories {
		return
	}
	if fd, err := unix.FcntlInt(uintptr(dir), unix.F_DUPFD_CLOEXEC, 3); err == nil {
		l.repositories[id] = fd
	}
}

// Workspace notes a name in a directory of a repository that the session made.
func (l *planted) Workspace(id guard.ID, dir int, name string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	w := l.workspaces[id]
	if w == nil && len(l.workspaces) < maxWorkspaces {
		if fd, err := unix.FcntlInt(uintptr(dir), unix.F_DUPFD_CLOEXEC, 3); err == nil {
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

// inWorkspaces says which of those names are there still.
func (l *planted) inWorkspaces() []string {
	var found []string
	for _, w := range l.workspaces {
		var st unix.Stat_t
		for _, name := range w.names {
			dir, err := os.Readlink("/proc/self/fd/" + strconv.Itoa(w.dir))
			if err == nil && unix.Fstatat(w.dir, name, &st, unix.AT_SYMLINK_NOFOLLOW) == nil {
				found = append(found, path.Join(dir, name))
			}
		}
		unix.Close(w.dir)
	}
	l.workspaces = nil
	if len(found) == 0 {
		return nil
	}
	slices.Sort(found)
	const why = ": editors, shells or agents act upon it where somebody works there"
	return []string{"made: " + told(found, l.unheld) + why}
}

// told names the first of a list, and how many more there are.
func told(files []string, more int) string {
	if n := len(files) - maxToldChanges; n > 0 {
		files, more = files[:maxToldChanges], more+n
	}
	if more == 0 {
		return strings.Join(quoted(files), ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(quoted(files), ", "), more)
}

// lines say what is left, and make repositories harmless if that is wished.
func (l *planted) lines(p *plan.Plan, neutralise bool) []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	var out []string
	for _, fd := range l.repositories {
		out = append(out, made(fd, neutralise)...)
		unix.Close(fd)
	}
	l.repositories = nil
	slices.Sort(out)
	out = slices.Concat(out, l.inWorkspaces(), l.rebases(p), l.inOpened())
	var files []string
	for f := range l.changed {
		files = append(files, f)
	}
	if slices.Sort(files); len(files) > 0 {
		out = append(out, "changed: "+told(files, 0)+": what you build or run next runs what is in there")
	}
	return out
}

func quoted(list []string) []string {
	out := make([]string, len(list))
	for i, s := range list {
		out[i] = quote(s)
	}
	return out
}

// made says what git would run in a repository that the session made.
func made(fd int, neutralise bool) []string {
	name, err := os.Readlink("/proc/self/fd/" + strconv.Itoa(fd))
	var st unix.Stat_t
	if err != nil || unix.Fstat(fd, &st) != nil || st.Nlink == 0 || unix.Fstatat(fd, "HEAD", &st, unix.AT_SYMLINK_NOFOLLOW) != nil {
		return nil // gone again
	}
	var acts []string
	rel := path.Join(path.Base(name), "config")
	config, err := readIn(fd, "config")
	if err == nil {
		keys, kerr := guard.Acting(rel, config)
		acts, err = keys, kerr
	}
	if err != nil && !host.NotExist(err) {
		acts = append(acts, "settings that are not understood")
	}
	acts = append(acts, hooksIn(fd)...)
	if len(acts) == 0 {
		return nil
	}
	line := "made: repository " + quote(name) + ": git runs what the session put there: " + quoting.ASCII(strings.Join(acts, ", "))
	if !neutralise {
		return []string{line + " (fs.made_repositories = \"neutralise\" takes it away)"}
	}
	if err := neutralised(fd, rel, config); err != nil {
		return []string{line + ", and that could not be taken away: " + err.Error()}
	}
	return []string{line + ", which was taken away: config.before-sbx has it"}
}

func hooksIn(fd int) []string {
	dir, err := unix.Openat2(fd, "hooks", &unix.OpenHow{Flags: unix.O_RDONLY | unix.O_DIRECTORY | unix.O_CLOEXEC, Resolve: unix.RESOLVE_BENEATH | unix.RESOLVE_NO_SYMLINKS})
	if err != nil {
		var st unix.Stat_t
		if unix.Fstatat(fd, "hooks", &st, unix.AT_SYMLINK_NOFOLLOW) == nil {
			return []string{"hooks that cannot be looked at"}
		}
		return nil
	}
	f := os.NewFile(uintptr(dir), "hooks")
	defer f.Close()
	list, _ := f.Readdirnames(-1)
	var out []string
	for _, name := range list {
		if !strings.HasSuffix(name, ".sample") {
			out = append(out, "hook "+name)
		}
	}
	slices.Sort(out)
	return out
}

func readIn(dir int, name string) ([]byte, error) {
	fd, err := unix.Openat(dir, name, unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	defer unix.Close(fd)
	return host.PeekAt(fd, 0, 1<<20)
}

// neutralised puts a configuration without what makes git run something in the place of a repository's own, which is kept beside it.
func neutralised(fd int, rel string, config []byte) error {
	next, err := guard.Neutral(rel, config)
	if err != nil {
		return err
	}
	out, err := unix.Openat(fd, "config.sbx", unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0o644)
	if err != nil {
		return fmt.Errorf("making config.sbx: %w", err)
	}
	f := os.NewFile(uintptr(out), "config.sbx")
	_, err = f.Write(next)
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err == nil {
		err = unix.Renameat2(fd, "config", fd, "config.before-sbx", unix.RENAME_NOREPLACE)
	}
	if err == nil || err == unix.ENOENT {
		err = unix.Renameat(fd, "config.sbx", fd, "config")
	}
	if err != nil {
		_ = unix.Unlinkat(fd, "config.sbx", 0) // the first failure is the one to tell
	}
	return err
}

// rebases tells of one that was begun, or changed, and runs commands when somebody continues it.
func (l *planted) rebases(p *plan.Plan) []string {
	var out []string
	for i := range p.Mounts {
		m := &p.Mounts[i]
		writable := m.Kind == plan.Judged || m.Kind == plan.Fuse && m.Access == plan.ReadWrite
		if !writable || m.Target == "/" || request.GuardedTop(p, string(m.Target)) != m {
			continue
		}
		for _, dir := range [...]string{"/.git", ""} {
			todo := string(m.Target) + dir + "/rebase-merge/git-rebase-todo"
			info, err := os.Lstat(todo)
			if err != nil || !info.Mode().IsRegular() || !changedSince(info, l.began) {
				continue
			}
			text, err := host.FS{}.Peek(todo, 0, 1<<20)
			if err != nil || hasCommand(string(text)) {
				out = append(out, "left: "+quote(todo)+" names commands that git rebase --continue runs")
			}
		}
	}
	return out
}

func hasCommand(todo string) bool {
	for line := range strings.Lines(todo) {
		if word, _, _ := strings.Cut(strings.TrimSpace(line), " "); word == "exec" || word == "x" {
			return true
		}
	}
	return false
}

// inOpened looks through the directories that answers let be written for guarded names that came while the session ran.
func (l *planted) inOpened() []string {
	judge, err := guard.NewJudge(guard.BuiltIn())
	if err != nil {
		return []string{err.Error()}
	}
	var out []string
	left := maxLookedThrough
	for dir := range l.opened {
		out = l.look(dir, judge.Root(), &left, out)
	}
	slices.Sort(out)
	if out = slices.Compact(out); left < 0 {
		out = append(out, "made: guarded names in large directories were not all looked for")
	}
	return out
}

func (l *planted) look(dir string, at *guard.Place, left *int, out []string) []string {
	list, err := os.ReadDir(dir)
	if *left -= len(list); err != nil || *left < 0 {
		return out
	}
	for _, e := range list {
		p := path.Join(dir, e.Name())
		v := at.Rule(e.Name(), guard.ByHost)
		if v.Action != guard.Free {
			if info, err := e.Info(); err == nil && changedSince(info, l.began) {
				out = append(out, "made: "+quote(p)+": "+v.Why)
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

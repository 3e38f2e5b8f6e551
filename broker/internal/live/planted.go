package live

import (
	"errors"
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

	"sbx/broker/internal/guard"
	"sbx/broker/internal/host"
	"sbx/broker/internal/planner"
	"sbx/broker/internal/quoting"
	"sbx/broker/internal/request"
	"sbx/broker/plan"
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
	unseen       int             // repositories beyond maxMadeRepositories
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
	if _, ok := l.repositories[id]; ok {
		return
	}
	if len(l.repositories) >= maxMadeRepositories {
		l.unseen++
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
		out = append(out, l.made(fd, neutralise)...)
	}
	for _, fd := range l.repositories {
		unix.Close(fd)
	}
	l.repositories = nil
	if l.unseen > 0 {
		const why = "of more than %d repositories, which were not looked at: git may run what the session put there"
		out = append(out, fmt.Sprintf("made: the rest "+why, maxMadeRepositories))
	}
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
		out[i] = quoting.Quote(s)
	}
	return out
}

// made says what git would run in a repository that the session made.
func (l *planted) made(fd int, neutralise bool) []string {
	name, err := os.Readlink("/proc/self/fd/" + strconv.Itoa(fd))
	var st unix.Stat_t
	if err != nil || unix.Fstat(fd, &st) != nil || st.Nlink == 0 ||
		unix.Fstatat(fd, "HEAD", &st, unix.AT_SYMLINK_NOFOLLOW) != nil {
		return nil // gone again
	}
	var acts []string
	for _, file := range configsOf() {
		acts = append(acts, settingsIn(fd, path.Base(name), file)...)
	}
	if l.leadsElsewhere(fd) {
		acts = append(acts, "commondir, which leads to other settings")
	}
	acts = append(acts, hooksIn(fd)...)
	if len(acts) == 0 {
		return nil
	}
	line := "made: repository " + quoting.Quote(name) + ": git runs what the session put there: " +
		quoting.ASCII(strings.Join(acts, ", "))
	if !neutralise {
		return []string{line + " (fs.made_repositories = \"neutralise\" takes it away)"}
	}
	for _, file := range configsOf() {
		err = errors.Join(err, neutralised(fd, path.Base(name), file))
	}
	if l.leadsElsewhere(fd) {
		err = errors.Join(err, unix.Renameat2(fd, "commondir", fd, "commondir"+setAside, unix.RENAME_NOREPLACE))
	}
	if err != nil {
		return []string{line + ", and that could not be taken away: " + err.Error()}
	}
	return []string{line + ", which was taken away: config" + setAside + " has it"}
}

// configsOf are the configurations in a repository's directory.
func configsOf() [2]string { return [...]string{"config", "config.worktree"} }

// settingsIn says what git would run by a configuration.
func settingsIn(fd int, base, file string) []string {
	text, err := readIn(fd, file)
	if host.NotExist(err) {
		return nil
	}
	var keys []string
	if err == nil {
		keys, err = guard.Acting(path.Join(base, file), text)
	}
	if err != nil {
		return []string{"settings that are not understood"}
	}
	return keys
}

// leadsElsewhere says whether a repository's directory takes its settings from another one that is not told by itself.
func (l *planted) leadsElsewhere(fd int) bool {
	text, err := readIn(fd, "commondir")
	if host.NotExist(err) {
		return false
	}
	dir, e := unix.Openat(fd, "../..", unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil || e != nil {
		return true
	}
	defer unix.Close(dir)
	var common, st unix.Stat_t
	told := guard.CommonDir(text) && unix.Fstat(dir, &common) == nil
	return !told || !slices.ContainsFunc(slices.Collect(maps.Values(l.repositories)), func(known int) bool {
		return unix.Fstat(known, &st) == nil && st.Dev == common.Dev && st.Ino == common.Ino
	})
}

func hooksIn(fd int) []string {
	dir, err := unix.Openat2(fd, "hooks", &unix.OpenHow{Flags: unix.O_RDONLY | unix.O_DIRECTORY | unix.O_CLOEXEC,
		Resolve: unix.RESOLVE_BENEATH | unix.RESOLVE_NO_SYMLINKS})
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

// readIn reads a file of at most planner.MaxConfigSize.
func readIn(dir int, name string) ([]byte, error) {
	fd, err := unix.Openat(dir, name, unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	defer unix.Close(fd)
	text, err := host.PeekAt(fd, 0, planner.MaxConfigSize+1)
	if err == nil && len(text) > planner.MaxConfigSize {
		err = unix.EFBIG
	}
	return text, err
}

// setAside ends the names of what was taken away.
const setAside = ".before-sbx"

// neutralised puts a configuration without what makes git run something in the place of a repository's own, which is
// kept beside it.
func neutralised(fd int, base, file string) error {
	config, err := readIn(fd, file)
	if host.NotExist(err) && file != "config" {
		return nil
	}
	next, err := guard.Neutral(path.Join(base, file), config)
	if err != nil { // it is not understood
		next, _ = guard.Neutral(path.Join(base, file), nil)
	}
	const made = "config.sbx"
	out, err := unix.Openat(fd, made, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0o644)
	if err != nil {
		return fmt.Errorf("making %s: %w", made, err)
	}
	f := os.NewFile(uintptr(out), made)
	_, err = f.Write(next)
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err == nil {
		err = unix.Renameat2(fd, file, fd, file+setAside, unix.RENAME_NOREPLACE)
	}
	if err == nil || err == unix.ENOENT {
		err = unix.Renameat(fd, made, fd, file)
	}
	if err != nil {
		_ = unix.Unlinkat(fd, made, 0) // the first failure is the one to tell
	}
	return err
}

// rebases tells of one that was begun, or changed, and runs commands when somebody continues it.
func (l *planted) rebases(p *plan.Plan) []string {
	var out []string
	for i := range p.Mounts {
		m := &p.Mounts[i]
		writable := m.Kind == plan.Judged || m.Kind == plan.Fuse && m.Access == plan.ReadWrite
		if !writable || m.Target == "/" || request.GuardedTop(p, m.Target) != m {
			continue
		}
		for _, todo := range todosIn(m.Target) {
			info, err := os.Lstat(todo)
			if err != nil || !info.Mode().IsRegular() || !changedSince(info, l.began) {
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

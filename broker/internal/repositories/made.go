//go:build linux

package repositories

import (
	"crypto/rand"
	"errors"
	"fmt"
	"maps"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"sbx.example/sbx/broker/internal/gate/names"
	"sbx.example/sbx/broker/internal/guard"
	"sbx.example/sbx/broker/internal/host"
	"sbx.example/sbx/broker/internal/planner"
	"sbx.example/sbx/broker/internal/quoting"
	"sbx.example/sbx/broker/plan"
)

// made says what git would run in a repository that the session made, or in what git init would make one of.
func (l *Left) made(p *plan.Plan, fd int, neutralise bool) []string {
	name, err := nameOf(p, fd)
	var st unix.Stat_t
	if err != nil || unix.Fstat(fd, &st) != nil || st.Nlink == 0 {
		return nil // gone again
	}
	is := has(fd, "HEAD")
	git := is || guard.Fold(path.Base(name)) == ".git" || has(fd, "objects") || has(fd, "refs")
	acts, rebases := l.actsIn(fd, path.Base(name), git)
	var links []string
	if git {
		if links, err = linksIn(fd); len(links) > 0 {
			acts = append(acts, "links through which git writes: "+told(links, 0))
		} else if err != nil {
			acts = append(acts, "links that were not all looked for")
		}
	}
	if len(acts) == 0 {
		return nil
	}
	what, when := "repository ", ""
	if !is {
		what, when = "", " once git init makes a repository of it"
	}
	line := "made: " + what + quoting.Quote(name) + ": git runs what the session put there" + when + ": " +
		quoting.ASCII(strings.Join(acts, ", "))
	if !neutralise {
		return []string{line + " (fs.made_repositories = \"neutralise\" takes it away)"}
	}
	// The session may have left a directory that its owner cannot write.
	err = errors.Join(err, unix.Chmod("/proc/self/fd/"+strconv.Itoa(fd), st.Mode&0o7777|0o700), unlinked(fd, links))
	for _, file := range configsOf() {
		err = errors.Join(err, neutralised(fd, path.Base(name), file))
	}
	if l.leadsElsewhere(fd) {
		err = errors.Join(err, putAside(fd, "commondir"))
	}
	for _, dir := range rebases {
		err = errors.Join(err, putAside(fd, dir))
	}
	if err != nil {
		return []string{line + ", and that could not be taken away: " + err.Error()}
	}
	return []string{line + ", which was taken away: config" + setAside + "* has it"}
}

func has(fd int, name string) bool {
	var st unix.Stat_t
	return unix.Fstatat(fd, name, &st, unix.AT_SYMLINK_NOFOLLOW) == nil
}

// actsIn says what git would run in a directory, and in which of its rebases. One that is not for git may have a
// directory hooks and a file config all the same: there counts what git surely would take for its own.
func (l *Left) actsIn(fd int, base string, git bool) (acts, rebases []string) {
	for _, file := range configsOf() {
		keys, err := settingsIn(fd, base, file)
		if acts = append(acts, keys...); err != nil && git {
			acts = append(acts, "settings that are not understood")
		}
	}
	if !git {
		return append(acts, hooksIn(fd, runnable)...), nil
	}
	if l.leadsElsewhere(fd) {
		acts = append(acts, "commondir, which leads to other settings")
	}
	rebases = countedIn(fd)
	for _, dir := range rebases {
		acts = append(acts, "the count of "+dir+", which git's prompt has the shell read")
	}
	return append(acts, hooksIn(fd, nil)...), rebases
}

// runnable says whether git may run what is in a directory of hooks.
func runnable(dir int, name string) bool {
	var st unix.Stat_t
	return !strings.Contains(name, ".") && unix.Fstatat(dir, name, &st, 0) == nil && st.Mode&unix.S_IFMT == unix.S_IFREG &&
		st.Mode&0o111 != 0
}

// configsOf are the configurations in a repository's directory.
func configsOf() [2]string { return [...]string{"config", "config.worktree"} }

// settingsIn says what git would run by a configuration; an error: that is not understood.
func settingsIn(fd int, base, file string) ([]string, error) {
	text, err := readIn(fd, file)
	if host.NotExist(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return guard.Acting(path.Join(base, file), text)
}

// leadsElsewhere says whether a repository's directory takes its settings from another one that is not told by itself.
func (l *Left) leadsElsewhere(fd int) bool {
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

// hooksIn are the hooks in a repository's directory that may run. nil: any may.
func hooksIn(fd int, may func(dir int, name string) bool) []string {
	dir, err := openBelow(fd, "hooks", unix.O_RDONLY)
	if err != nil {
		var st unix.Stat_t
		if unix.Fstatat(fd, "hooks", &st, unix.AT_SYMLINK_NOFOLLOW) == nil && st.Mode&unix.S_IFMT != unix.S_IFREG {
			return []string{"hooks that cannot be looked at"}
		}
		return nil
	}
	f := os.NewFile(uintptr(dir), "hooks")
	defer f.Close()
	list, _ := f.Readdirnames(-1)
	var out []string
	for _, name := range list {
		if !strings.HasSuffix(name, ".sample") && (may == nil || may(dir, name)) {
			out = append(out, "hook "+name)
		}
	}
	slices.Sort(out)
	return out
}

// countedIn are the directories of unfinished rebases that say how far they are in other words than git's.
func countedIn(fd int) []string {
	var out []string
	for _, file := range guard.CountsOf() {
		dir, name := path.Split(file)
		at, err := openBelow(fd, dir, unix.O_PATH)
		var text []byte
		if err == nil {
			text, err = readIn(at, name)
			unix.Close(at)
		}
		harmless, _ := guard.Says(name, text)
		if dir = path.Clean(dir); !host.NotExist(err) && (err != nil || !harmless) && !slices.Contains(out, dir) {
			out = append(out, dir)
		}
	}
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

// putAside takes a file's name from it. Where the session has made something of the new name, that is longer.
func putAside(fd int, file string) error {
	err := unix.Renameat2(fd, file, fd, file+setAside, unix.RENAME_NOREPLACE)
	if err == unix.EEXIST {
		err = unix.Renameat2(fd, file, fd, file+setAside+"-"+rand.Text(), unix.RENAME_NOREPLACE)
	}
	return err
}

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
	made := names.Reserved + rand.Text()
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
		err = putAside(fd, file)
	}
	if err == nil || err == unix.ENOENT {
		err = unix.Renameat(fd, made, fd, file)
	}
	if err != nil {
		_ = unix.Unlinkat(fd, made, 0) // the first failure is the one to tell
	}
	return err
}

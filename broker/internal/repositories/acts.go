//go:build linux

package repositories

import (
	"fmt"
	"path"
	"strings"

	"golang.org/x/sys/unix"

	"sbx.example/sbx/broker/internal/gate/names"
	"sbx.example/sbx/broker/internal/guard"
)

// maxNested bounds how many repositories git would enter, each by the index of the one before.
const maxNested = 16

// Linked says whether git may use a repository's directory for the work in another one.
func (l *Links) Linked(dir, git string) bool { return l.harmless(git, dir, maxNested) }

// enters says which repository git would enter by the names of an index, in a work tree, that runs something.
func (l *Links) enters(top string, list []string, depth int) (acts string, err error) {
	for _, name := range list {
		at, err := l.expect(top, name)
		if err != nil {
			return "", fmt.Errorf("looking through %s: %w", path.Join(top, name), err)
		}
		for _, name := range at {
			if l.acts(top, name, depth) {
				return path.Join(top, name), nil
			}
		}
	}
	return "", nil
}

// acts says whether git would enter a repository at name, below a work tree, that the session made, or that runs
// something.
func (l *Links) acts(top, name string, depth int) bool {
	dir, err := openTree(top, name)
	if err != nil {
		return !isNone(err) // what comes is guarded
	}
	defer unix.Close(dir)
	at := path.Join(top, name)
	var st unix.Stat_t
	err = unix.Fstatat(dir, ".git", &st, unix.AT_SYMLINK_NOFOLLOW)
	switch {
	case err != nil:
		return !isNone(err)
	case st.Mode&unix.S_IFMT == unix.S_IFREG:
		text, err := readIn(dir, ".git")
		return err != nil || !names.Leads(l.Granted, at+"/.git", text, l.Session) ||
			!l.harmless(guard.LinkedDir(at, text), at, depth) ||
			// Who has had it open, or has it by another name, writes to it no more.
			names.Install(dir, ".git", text, st.Mode&0o777, 0) != nil
	case st.Mode&unix.S_IFMT != unix.S_IFDIR || l.Session.Own(identity(dir, ".git")):
		return true
	}
	return !l.harmless(at+"/.git", at, depth)
}

// harmless says whether git runs nothing where it uses a repository's directory for a work tree: neither by what is in
// that one, nor by what its index names.
func (l *Links) harmless(git, top string, depth int) bool {
	dir, err := unix.Open(git, held, 0)
	if err != nil {
		return err == unix.ENOENT // git makes it, and it is guarded then
	}
	defer unix.Close(dir)
	list, err := named(git)
	if err != nil || depth == 0 || !l.trusted(git) && runs(dir, path.Base(path.Dir(git)) == "worktrees") {
		return false
	}
	for _, tree := range append(placesSet(git), top) {
		if acts, err := l.enters(tree, list, depth-1); err != nil || acts != "" {
			return false
		}
	}
	return true
}

// trusted says whether a repository's directory belongs to one whose settings no session could write: that of a granted
// tree itself.
func (l *Links) trusted(git string) bool {
	if l.Granted.GitDir != "" && strings.HasPrefix(git+"/", l.Granted.GitDir+"/") {
		return true
	}
	for _, top := range append(l.Trees, l.Granted.Top) {
		if strings.HasPrefix(git, top+"/.git/") {
			return true
		}
	}
	return false
}

// runs says whether git runs something by what is in a repository's directory. One of a linked worktree, which may have
// its settings two directories above, has those looked at as well.
func runs(git int, linked bool) bool {
	for _, file := range configsOf() {
		if keys, err := settingsIn(git, ".git", file); err != nil || len(keys) > 0 {
			return true
		}
	}
	if len(hooksIn(git, nil)) > 0 {
		return true
	}
	text, err := readIn(git, "commondir")
	if err != nil {
		return !isNone(err)
	}
	if !linked || !guard.CommonDir(text) {
		return true
	}
	common, err := unix.Openat(git, "../..", held, 0)
	if err != nil {
		return true
	}
	defer unix.Close(common)
	return runs(common, false)
}

// isNone says whether an error means that there is nothing, or no directory: over a link git goes nowhere.
func isNone(err error) bool { return err == unix.ENOENT || err == unix.ENOTDIR || err == unix.ELOOP }

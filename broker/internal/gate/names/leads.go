//go:build linux

package names

import (
	"path"
	"strings"

	"golang.org/x/sys/unix"

	"sbx.example/sbx/broker/internal/guard"
)

// Leads says whether a file .git at an absolute path, with that text, leads git to a repository that is guarded.
func Leads(granted guard.Granted, file string, text []byte, session *guard.Session) bool {
	base, to, err := granted.GitFile(file, text)
	return err == nil && strict(base, to, base == granted.GitDir, session)
}

// MayLead is Leads for a file that is written now: git will use the repository in the directory of the file as well.
func MayLead(granted guard.Granted, file string, text []byte, session *guard.Session) bool {
	dir := path.Dir(file)
	return Leads(granted, file, text, session) &&
		(session.Linked == nil || session.Linked(dir, guard.LinkedDir(dir, text)))
}

// strict says whether the way to a repository's directory, from one that was granted, has no link on it, and nothing
// that the session may fill as it likes. What is missing in a .git, as base may be one, is made there by git: it is
// guarded then.
func strict(base, rel string, git bool, session *guard.Session) bool {
	dir, err := unix.Open(base, unix.O_PATH|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return false
	}
	defer func() { unix.Close(dir) }()
	for name := range strings.SplitSeq(rel, "/") {
		fd, err := open(dir, name, unix.O_PATH|unix.O_DIRECTORY, 0, beneath|unix.RESOLVE_NO_XDEV)
		if err != nil {
			return git && err == unix.ENOENT
		}
		unix.Close(dir)
		dir, git = fd, git || name == ".git"
		id, err := ID(fd)
		if err != nil || session.Own(id) {
			return false
		}
	}
	return true
}

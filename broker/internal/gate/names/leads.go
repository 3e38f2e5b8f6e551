//go:build linux

package names

import (
	"strings"

	"golang.org/x/sys/unix"

	"sbx.example/sbx/broker/internal/guard"
	"sbx.example/sbx/broker/internal/host"
)

// Leads says whether a file .git at an absolute path, with that text, leads git to a repository that is guarded.
func Leads(granted guard.Granted, file string, text []byte, session *guard.Session) bool {
	base, to, err := granted.GitFile(file, text)
	return err == nil && strict(base, to, base == granted.GitDir, session)
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
		st, err := host.StampOf(fd, "")
		if err != nil || session.Own(guard.ID{Dev: st.Dev, Ino: st.Ino, Born: st.Born}) {
			return false
		}
	}
	return true
}

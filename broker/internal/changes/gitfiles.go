//go:build linux

package changes

import (
	"errors"
	"io/fs"
	"path"

	"golang.org/x/sys/unix"

	"sbx.example/sbx/broker/internal/guard"
)

// judgeIndex tells of repositories that an index names newly: git status enters what the host has there.
func (s *scanner) judgeIndex(c *Change, why string) {
	var old, now []byte
	file := within(c.Path, s.l.Target)
	now, err := readMost(s.upper, file, guard.MaxIndex)
	if err == nil && c.Op != Added {
		old, err = readMost(s.host, file, guard.MaxIndex)
	}
	size, e := s.idSize(path.Dir(file))
	var found []string
	if err = errors.Join(err, e); err == nil {
		found, err = guard.NewLinks(old, now, size)
	}
	if err != nil || len(found) > 0 {
		c.Risk, c.Reason = Guarded, why
	}
}

// idSize is the length of object ids in the index of a repository's directory: the host has that format, and what the
// layer says of it is the same.
func (s *scanner) idSize(git string) (int, error) {
	dirs := []string{git}
	if path.Base(path.Dir(git)) == "worktrees" {
		dirs = append(dirs, path.Join(git, "../.."))
	}
	read := func(root int) (list [][]byte, err error) {
		for _, dir := range dirs {
			text, e := readSmall(root, path.Join(dir, "config"))
			if e == nil {
				list = append(list, text)
			} else if root >= 0 && !errors.Is(e, fs.ErrNotExist) && !errors.Is(e, unix.ENOTDIR) {
				err = e
			}
		}
		return list, err
	}
	there, err := read(s.host)
	if err == nil && len(there) == 0 {
		there = append(there, []byte{}) // git takes it as it takes an empty one
	}
	next, e := read(s.upper)
	if err = errors.Join(err, e); err != nil {
		return 0, err
	}
	return guard.IDSize(append(there, next...)...)
}

// judgeConfig puts a repository's configuration before the check that a session's own writing is put before. What is
// taken away is as if it were empty.
func (s *scanner) judgeConfig(c *Change) {
	if c.Op == Mode {
		return
	}
	var old, now []byte
	var err error
	file := within(c.Path, s.l.Target)
	if c.Op != Deleted {
		now, err = readSmall(s.upper, file)
	}
	if err == nil && c.Op != Added {
		old, err = readSmall(s.host, file)
	}
	if s.l.Git {
		file = c.Path
	}
	if err == nil {
		err = (&guard.Configs{Elsewhere: s.l.elsewhere}).Check(file, old, now)
	}
	if err != nil {
		c.Risk, c.Reason = Guarded, err.Error()
	}
}

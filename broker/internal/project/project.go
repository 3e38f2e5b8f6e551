// Package project finds the directory that counts as the project of where somebody stands. It must never take one that
// another user could have put there. Package request calls it.
package project

import (
	"fmt"
	"path/filepath"

	"golang.org/x/sys/unix"

	"sbx.example/sbx/broker/internal/host"
	"sbx.example/sbx/broker/internal/policy/excerpt"
	"sbx.example/sbx/broker/internal/policy/pathname"
)

// Project is the directory that counts as the project, and why.
type Project struct {
	Root   string
	Marker string // ".sbx" or ".git"; empty where cwd itself was taken
	// Risky says why this root should be confirmed by a human before it is made writable: it is the home directory,
	// above it, or not the user's. Empty is fine.
	Risky string
}

// Discover walks up from cwd to the nearest directory with a .sbx or .git. It stops below $HOME, at a mount boundary
// and at a directory of another user, because what lies above could have been put there for us to find
// (CVE-2022-24765). cwd and home must be free of symbolic links.
func Discover(cwd, home string, uid int) (Project, error) {
	for name, p := range map[string]string{"current directory": cwd, "home directory": home} {
		if clean, err := pathname.Clean(p); err != nil || clean != p {
			return Project{}, fmt.Errorf("finding the project: %s %s is not a clean absolute path", name, excerpt.Quote(p))
		}
	}
	var start unix.Stat_t
	if err := unix.Stat(cwd, &start); err != nil {
		return Project{}, fmt.Errorf("finding the project: looking at %s: %w", excerpt.Quote(cwd), err)
	}
	if int(start.Uid) == uid {
		for dir := cwd; dir != "/" && !host.Within(home, dir); dir = filepath.Dir(dir) {
			var st unix.Stat_t
			if err := unix.Lstat(dir, &st); err != nil || int(st.Uid) != uid || st.Dev != start.Dev {
				break
			}
			for _, marker := range []string{".sbx", ".git"} {
				// .git is a file in a worktree; a link or something of another user's is no marker.
				var m unix.Stat_t
				if unix.Lstat(dir+"/"+marker, &m) == nil && int(m.Uid) == uid && m.Mode&unix.S_IFMT != unix.S_IFLNK {
					return Project{Root: dir, Marker: marker}, nil
				}
			}
		}
	}
	p := Project{Root: cwd}
	switch {
	case cwd == home:
		p.Risky = "it is your home directory"
	case host.Within(home, cwd):
		p.Risky = "your home directory lies in it"
	case int(start.Uid) != uid:
		p.Risky = fmt.Sprintf("it belongs to uid %d", start.Uid)
	}
	return p, nil
}

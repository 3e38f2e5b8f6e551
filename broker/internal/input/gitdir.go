package input

import (
	"io"
	"os"
	"path"
	"strings"

	"golang.org/x/sys/unix"

	"sbx.example/sbx/broker/internal/guard"
	"sbx.example/sbx/broker/internal/host"
	"sbx.example/sbx/broker/internal/planner"
)

// gitDir returns the repository that a linked worktree belongs to: its ".git" is a file that names a
// folder below the repository's own (gitrepository-layout(5), "gitfile"). It must point back at the
// worktree, so that a repository from elsewhere cannot make sbx open a directory of its choice. "" means
// that there is nothing to grant.
func gitDir(fs planner.FS, project string) string {
	if project == "" {
		return ""
	}
	st, err := fs.Lstat(project + "/.git")
	if err != nil || st.Type != host.File {
		return ""
	}
	dir := guard.LinkedDir(project, []byte(readShort(project+"/.git")))
	if dir == "" {
		return ""
	}
	back := readShort(dir + "/gitdir")
	common := readShort(dir + "/commondir")
	if back != project+"/.git" || common == "" {
		return ""
	}
	if !path.IsAbs(common) {
		common = path.Join(dir, common)
	}
	common, _, cst, err := host.Resolve(fs, path.Clean(common))
	if err != nil || cst.Type != host.Dir || cst.UID != uint32(os.Getuid()) || path.Dir(path.Dir(dir)) != common ||
		readShort(common+"/HEAD") == "" {
		return ""
	}
	return common
}

// readShort reads one line of a small regular file, without following a link in its last component.
func readShort(p string) string {
	fd, err := unix.Open(p, unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return ""
	}
	f := os.NewFile(uintptr(fd), p)
	defer f.Close()
	if st, err := f.Stat(); err != nil || !st.Mode().IsRegular() {
		return ""
	}
	b, _ := io.ReadAll(io.LimitReader(f, 4096))
	line, _, _ := strings.Cut(string(b), "\n")
	return line
}

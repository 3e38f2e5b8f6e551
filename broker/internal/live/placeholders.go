package live

import (
	"os"
	"path"
	"strings"

	"golang.org/x/sys/unix"

	"sbx.example/sbx/broker/internal/gate/names"
	"sbx.example/sbx/broker/internal/host"
	"sbx.example/sbx/broker/internal/request"
)

// placeholders are names in a project that an agent makes for its own sandbox to mount on, and that were missing when
// the session began.
type placeholders struct {
	project string
	missing []string
}

func newPlaceholders(a *request.Agent, project string) (p placeholders) {
	if a == nil || project == "" {
		return p
	}
	p.project = project
	for _, name := range a.Placeholders {
		if !host.Exists(path.Join(project, name)) {
			p.missing = append(p.missing, name)
		}
	}
	return p
}

// remove removes those of them that are empty when it has ended.
func (p placeholders) remove() {
	if len(p.missing) == 0 {
		return
	}
	top, err := unix.Open(p.project, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return
	}
	defer unix.Close(top)
	for _, name := range p.missing {
		dir, base := path.Split(name)
		at, err := names.OpenBeneath(top, path.Clean("./"+dir), unix.O_PATH|unix.O_DIRECTORY|unix.O_NOFOLLOW, 0)
		if err != nil {
			continue
		}
		removeEmpty(at, strings.TrimSuffix(base, "/"))
		unix.Close(at)
	}
}

// removeEmpty removes an empty file, or a directory in which nothing else is.
func removeEmpty(at int, name string) bool {
	var st unix.Stat_t
	if names.Stat(at, name, &st) != nil {
		return false
	}
	switch st.Mode & unix.S_IFMT {
	case unix.S_IFREG:
		return st.Size == 0 && st.Nlink == 1 && unix.Unlinkat(at, name, 0) == nil
	case unix.S_IFDIR:
	default:
		return false
	}
	fd, err := names.OpenBeneath(at, name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW, 0)
	if err != nil {
		return false
	}
	f := os.NewFile(uintptr(fd), name)
	defer f.Close()
	list, err := f.ReadDir(-1)
	for _, e := range list {
		if err != nil || !removeEmpty(fd, e.Name()) {
			return false
		}
	}
	return err == nil && unix.Unlinkat(at, name, unix.AT_REMOVEDIR) == nil
}

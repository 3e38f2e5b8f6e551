//go:build linux

package changes

import (
	"fmt"
	"path"

	"golang.org/x/sys/unix"
	"sbx.example/sbx/broker/internal/host"
)

// made is the name below the layer's place that one of them has got on the host, and what is there since.
type made struct {
	rel string
	is  stamp
}

func inodeOf(st *unix.Stat_t) host.Inode { return host.Inode{Dev: st.Dev, Ino: st.Ino} }

// keepMade remembers a new file that has further names (hard links) in the layer.
func (a *applier) keepMade(c *Change, dir int, name string) {
	var st unix.Stat_t
	if c.Kind == File && c.now.Nlink > 1 && lstatAt(dir, name, &st) == nil {
		a.made[inodeOf(&c.now)] = made{c.rel, stampOf(&st)}
	}
}

// linkMade makes temp one more name of a file that this apply has made, as it is in the layer. Where it cannot there
// will be a copy.
func (a *applier) linkMade(c *Change, dir int, temp string) bool {
	first, ok := a.made[inodeOf(&c.now)]
	if !ok {
		return false
	}
	from, err := openBelow(a.host, path.Dir(first.rel))
	if err != nil {
		return false
	}
	defer unix.Close(from)
	fd, err := pin(from, path.Base(first.rel))
	if err != nil {
		return false
	}
	defer unix.Close(fd)
	now, err := stampAt(fd)
	return err == nil && now == first.is &&
		unix.Linkat(unix.AT_FDCWD, fmt.Sprintf("/proc/self/fd/%d", fd), dir, temp, unix.AT_SYMLINK_FOLLOW) == nil
}

package stage

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"sbx/shared/plan"
)

// overlay mounts its layers by descriptor, so that no path of the broker's stands in the mount table
// and nothing can be swapped. Names in Hide become whiteouts in a layer of their own on top, which holds Files as well.
func (c *builder) overlay(m *plan.Mount, rel string) error {
	t := c.t
	fd := uintptr(fdLayer)
	keep := func() string { // keeps what is in regA
		t.call(unix.SYS_DUP3, 0, fd, unix.O_CLOEXEC).from(0, regA)
		t.call(unix.SYS_CLOSE).from(0, regA)
		fd++
		return fmt.Sprintf("/proc/self/fd/%d", fd-1)
	}
	add := func(p plan.Bytes) string {
		c.open(string(p), regA)
		return keep()
	}
	var lowers []string
	if len(m.Hide)+len(m.Files) > 0 {
		c.whiteouts(m, rel)
		c.openInside(rel, regA)
		c.hide(m, regA)
		lowers = append(lowers, keep())
	}
	for _, l := range m.Lower {
		lowers = append(lowers, add(l))
	}
	opts := "lowerdir=" + strings.Join(lowers, ":")
	if m.Upper != "" {
		opts += ",upperdir=" + add(m.Upper) + ",workdir=" + add(m.Work)
	}
	opts += ",userxattr" // what the kernel notes about it is in attributes that every user may set
	if m.NoUUID {        // and there is none about a new upper directory
		opts += ",uuid=null"
	}
	if fd > fdSock {
		return fmt.Errorf("%d layers, at most %d", fd-fdLayer, fdSock-fdLayer)
	}
	c.mountOn(rel, t.str("overlay"), t.str("overlay"), mountFlags(m), t.str(opts))
	t.call(unix.SYS_CLOSE_RANGE, fdLayer, fd-1, 0)
	c.place(rel, true)
	return nil
}

// whiteouts makes the layer that hides names (overlayfs: a character device 0:0 is a whiteout in any layer; made without CAP_MKNOD since
// 5.8). It is where the overlay will stand, which covers it: a small tmpfs, or the directory of the skeleton itself.
func (c *builder) whiteouts(m *plan.Mount, rel string) {
	t := c.t
	if !c.bare(m) {
		c.mountOn(rel, t.str("tmpfs"), t.str("tmpfs"), unix.MS_NOSUID|unix.MS_NODEV, t.str("size=1m,mode=755"))
	}
	c.fill(m, rel)
}

// hide makes the whiteouts in the layer in r.
func (c *builder) hide(m *plan.Mount, r uint8) {
	t := c.t
	dirs := map[string]bool{}
	for _, h := range m.Hide {
		for d := path.Dir(string(h)); d != "."; d = path.Dir(d) {
			dirs[d] = true
		}
	}
	for _, d := range slices.Sorted(maps.Keys(dirs)) {
		t.call(unix.SYS_MKDIRAT, 0, t.str(d), dirMode).from(0, r)
	}
	for _, h := range m.Hide {
		t.call(unix.SYS_MKNODAT, 0, t.str(string(h)), unix.S_IFCHR, 0).from(0, r)
	}
}

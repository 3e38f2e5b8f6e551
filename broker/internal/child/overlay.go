//go:build linux

package child

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"sbx.example/sbx/broker/plan"
	"sbx.example/sbx/shared/stage"
	"sbx.example/sbx/shared/tape"
)

// overlay mounts its layers by descriptor, so that no path of the broker's stands in the mount table
// and nothing can be swapped. Names in Hide become whiteouts in a layer of their own on top, which holds Files as well.
func (c *builder) overlay(m *plan.Mount, rel string) error {
	t := c.T
	fd := uintptr(stage.FdLayer)
	keep := func() string { // keeps what is in RegA
		t.Call(unix.SYS_DUP3, 0, fd, unix.O_CLOEXEC).From(0, tape.RegA)
		t.Call(unix.SYS_CLOSE).From(0, tape.RegA)
		fd++
		return fmt.Sprintf("/proc/self/fd/%d", fd-1)
	}
	add := func(p plan.Bytes) string {
		c.Open(string(p), tape.RegA)
		return keep()
	}
	var lowers []string
	if len(m.Hide)+len(m.Files) > 0 {
		c.whiteouts(m, rel)
		c.OpenInside(rel, tape.RegA)
		c.hide(m, tape.RegA)
		lowers = append(lowers, keep())
	}
	for _, l := range m.Lower {
		lowers = append(lowers, add(plan.Bytes(l)))
	}
	opts := "lowerdir=" + strings.Join(lowers, ":")
	if m.Upper != "" {
		opts += ",upperdir=" + add(plan.Bytes(m.Upper)) + ",workdir=" + add(plan.Bytes(m.Work))
	}
	if m.Kind == plan.TmpOverlay {
		c.layers++
		for _, dir := range [...]string{"upper", "work"} {
			name := fmt.Sprint(dir, c.layers)
			t.Call(unix.SYS_MKDIRAT, fdScratch, t.Str(name), stage.DirMode)
			opts += fmt.Sprintf(",%sdir=/proc/self/fd/%d/%s", dir, fdScratch, name)
		}
	}
	opts += ",userxattr" // what the kernel notes about it is in attributes that every user may set
	if m.NoUUID {        // and there is none about a new upper directory
		opts += ",uuid=null"
	}
	if fd > stage.FdSock {
		return fmt.Errorf("%d layers, at most %d", fd-stage.FdLayer, stage.FdSock-stage.FdLayer)
	}
	c.MountOn(rel, t.Str("overlay"), t.Str("overlay"), stage.MountFlags(m, unix.MS_NOSYMFOLLOW), t.Str(opts))
	t.Call(unix.SYS_CLOSE_RANGE, stage.FdLayer, fd-1, 0)
	c.Place(rel, m.Kind != plan.TmpOverlay)
	return nil
}

// whiteouts makes the layer that hides names (overlayfs: a character device 0:0 is a whiteout in any layer; made
// without CAP_MKNOD since 5.8). It is where the overlay will stand, which covers it: a small tmpfs, or the directory of
// the skeleton itself.
func (c *builder) whiteouts(m *plan.Mount, rel string) {
	t := c.T
	if !c.bare(m) {
		c.MountOn(rel, t.Str("tmpfs"), t.Str("tmpfs"), unix.MS_NOSUID|unix.MS_NODEV, t.Str("size=1m,mode=755"))
	}
	c.fill(m, rel)
}

// hide makes the whiteouts in the layer in r.
func (c *builder) hide(m *plan.Mount, r uint8) {
	t := c.T
	dirs := map[string]bool{}
	for _, h := range m.Hide {
		for d := path.Dir(string(h)); d != "."; d = path.Dir(d) {
			dirs[d] = true
		}
	}
	for _, d := range slices.Sorted(maps.Keys(dirs)) {
		t.Call(unix.SYS_MKDIRAT, 0, t.Str(d), stage.DirMode).From(0, r)
	}
	for _, h := range m.Hide {
		t.Call(unix.SYS_MKNODAT, 0, t.Str(string(h)), unix.S_IFCHR, 0).From(0, r)
	}
}

//go:build linux

package changes

import (
	"fmt"
	"path"

	"golang.org/x/sys/unix"

	"sbx.example/sbx/broker/plan"
)

// room is what changes take of one file system.
type room struct {
	dir          string // in it
	bytes, names uint64
}

// enoughSpace refuses before anything is done what cannot end well. Layers may lie on the same file system.
func enoughSpace(list []Change) error {
	var all []*room
	of, by := map[*Layer]*room{}, map[uint64]*room{} // by device
	for i := range list {
		c := &list[i]
		r := of[c.layer]
		if r == nil {
			dir := c.layer.Target
			var st unix.Stat_t
			if unix.Stat(dir, &st) == unix.ENOENT {
				dir = path.Dir(dir)
				_ = unix.Stat(dir, &st)
			}
			if r = by[st.Dev]; r == nil {
				r = &room{dir: dir}
				by[st.Dev], all = r, append(all, r)
			}
			of[c.layer] = r
		}
		if c.Kind == File && (c.Op == Added || c.Op == Modified || c.Op == Replaced || c.Links > 0) {
			r.bytes += uint64(c.now.Blocks) * 512
		}
		if c.Op == Added {
			r.names++
		}
	}
	for _, r := range all {
		if err := r.free(); err != nil {
			return err
		}
	}
	return nil
}

func (r *room) free() error {
	var st unix.Statfs_t
	if unix.Statfs(r.dir, &st) != nil {
		return nil
	}
	refuse := func(need, free uint64, what string) error {
		return fmt.Errorf("applying to %s: %w: %d %s and %d are free; nothing was changed", plan.Bytes(r.dir).Quote(),
			unix.ENOSPC, need, what, free)
	}
	if free := st.Bavail * uint64(st.Bsize); r.bytes > free {
		return refuse(r.bytes, free, "bytes are to be written")
	}
	if st.Files > 0 && r.names > st.Ffree { // some have no such number
		return refuse(r.names, st.Ffree, "files are to be made")
	}
	return nil
}

package host

import (
	"os"
	"path"
	"syscall"
)

// Cache is an FS that asks the kernel once for each path, and not at all for a name that is missing
// in a directory that was listed. Planning looks at a few hundred paths, most of which do not exist;
// the plan carries device and inode, so that what changes meanwhile is noticed when it is mounted.
type Cache struct {
	fs      FS
	stats   map[string]int // index in results
	results []statResult
	links   map[string]string
	lists   map[string]listResult
}

type statResult struct {
	st  Stat
	err error
}

type listResult struct {
	entries []Entry
	err     error
}

// usual is how many paths are looked at for an ordinary plan.
const usual = 320

// NewCache returns an empty cache.
func NewCache() *Cache {
	return &Cache{stats: make(map[string]int, usual), results: make([]statResult, 0, usual), links: map[string]string{},
		lists: map[string]listResult{}}
}

// Lstat is FS.Lstat.
func (c *Cache) Lstat(p string) (Stat, error) {
	if i, ok := c.stats[p]; ok {
		return c.results[i].st, c.results[i].err
	}
	dir, name := path.Split(p)
	if len(dir) > 1 {
		dir = dir[:len(dir)-1]
	}
	var r statResult
	if l, ok := c.lists[dir]; ok && l.err == nil && !Lists(l.entries, name) && p != "/" {
		r.err = &os.PathError{Op: "lstat", Path: p, Err: syscall.ENOENT}
	} else if i, ok := c.stats[dir]; ok && c.results[i].err != nil && NotExist(c.results[i].err) {
		r.err = &os.PathError{Op: "lstat", Path: p, Err: syscall.ENOENT}
	} else {
		r.st, r.err = c.fs.Lstat(p)
	}
	c.stats[p] = len(c.results)
	c.results = append(c.results, r)
	return r.st, r.err
}

// Readlink is FS.Readlink.
func (c *Cache) Readlink(p string) (string, error) {
	if t, ok := c.links[p]; ok {
		return t, nil
	}
	t, err := c.fs.Readlink(p)
	if err == nil {
		c.links[p] = t
	}
	return t, err
}

// ReadDir is FS.ReadDir.
func (c *Cache) ReadDir(p string) ([]Entry, error) {
	if l, ok := c.lists[p]; ok {
		return l.entries, l.err
	}
	l := listResult{}
	l.entries, l.err = c.fs.ReadDir(p)
	c.lists[p] = l
	return l.entries, l.err
}

// Access is FS.Access.
func (c *Cache) Access(p string, mode uint32) bool { return c.fs.Access(p, mode) }

package host

import (
	"cmp"
	"errors"
	"os"
	"path"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Cache is an FS that asks the kernel once for each path, and not at all for a name that is missing
// in a directory that was listed. Planning looks at a few hundred paths, most of which do not exist;
// the plan carries device and inode, so that what changes meanwhile is noticed when it is mounted.
// What was a directory once is read through no link that has taken its place since. In what is Closed there is nothing
// but its mount point, of which no server is asked.
type Cache struct {
	foreign   *Foreign
	fs        FS
	stats     map[string]int // index in results
	results   []statResult
	links     map[string]string
	lists     map[string]listResult
	exchanged string
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
func NewCache(foreign *Foreign) *Cache {
	return &Cache{foreign: foreign,
		stats: make(map[string]int, usual), results: make([]statResult, 0, usual), links: map[string]string{},
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
		r.st, r.err = c.lstat(dir, name)
	}
	c.stats[p] = len(c.results)
	c.results = append(c.results, r)
	return r.st, r.err
}

// lstat looks at a name of a directory, which is found as inDir does.
func (c *Cache) lstat(dir, name string) (st Stat, err error) {
	look := func() {
		p := path.Join(dir, name)
		if m := c.foreign.closedNow(p); m == "" || m == p {
			st, err = lstatPlain(p, m == "")
		} else {
			err = &os.PathError{Op: "lstat", Path: p, Err: ErrForeign}
		}
	}
	if look(); errors.Is(err, syscall.ELOOP) && c.leads(dir) {
		canon, _, _, rerr := Resolve(c, dir)
		if rerr != nil {
			return Stat{}, rerr
		}
		dir = canon
		look()
	}
	c.waitOut(path.Join(dir, name), func() bool {
		return errors.Is(err, syscall.ELOOP) || err == nil && st.Type == Link && c.listedDir(dir, name)
	}, look)
	return st, err
}

// Readlink is FS.Readlink.
func (c *Cache) Readlink(p string) (string, error) {
	if t, ok := c.links[p]; ok {
		return t, nil
	}
	if err := c.closed(p); err != nil {
		return "", err
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
	l.err = c.inDir(p, "", unix.O_RDONLY, func(fd int) (err error) {
		l.entries, err = list(fd)
		return err
	})
	if l.err != nil {
		l.err = &os.PathError{Op: "listing", Path: p, Err: l.err}
	}
	c.lists[p] = l
	return l.entries, l.err
}

// Stamp is FS.Stamp: what is judged is looked at when it is.
func (c *Cache) Stamp(p string) (st Stamp, err error) {
	err = c.inDir(path.Dir(p), path.Base(p), oPath, func(dir int) (err error) {
		st, err = StampOf(dir, path.Base(p))
		return err
	})
	return st, err
}

// Peek is FS.Peek.
func (c *Cache) Peek(p string, off int64, n int) (text []byte, err error) {
	err = c.inDir(path.Dir(p), path.Base(p), oPath, func(dir int) (err error) {
		text, err = peek(dir, path.Base(p), off, n)
		return err
	})
	return text, err
}

// Exchanged is a path in which a link stayed where a directory had been; "" if there was none. What was read of it
// is not known to be what is mounted.
func (c *Cache) Exchanged() string { return c.exchanged }

// closed says whether p lies in what is.
func (c *Cache) closed(p string) error {
	if c.foreign.closedNow(p) != "" {
		return &os.PathError{Op: "looking at", Path: p, Err: ErrForeign}
	}
	return nil
}

// inDir opens a directory, for a name in it. Links on the way are followed that were links when they were looked at for
// the first time.
func (c *Cache) inDir(dir, name string, flags int, do func(fd int) error) error {
	if err := c.closed(path.Join(dir, name)); err != nil {
		return err
	}
	fd, err := openToPlan(dir, flags|unix.O_DIRECTORY)
	if errors.Is(err, syscall.ELOOP) && c.leads(dir) {
		if dir, _, _, err = Resolve(c, dir); err != nil {
			return err
		}
		if err := c.closed(path.Join(dir, name)); err != nil {
			return err
		}
		fd, err = openToPlan(dir, flags|unix.O_DIRECTORY)
	}
	c.waitOut(dir, func() bool { return errors.Is(err, syscall.ELOOP) },
		func() { fd, err = openToPlan(dir, flags|unix.O_DIRECTORY) })
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	return do(fd)
}

// maxExchanges bounds how often a link is found in the place of a directory, each a millisecond after the last.
const maxExchanges = 1000

// waitOut looks again while a link stands where a directory was, which somebody may exchange again and again. One that
// stays is noted, and no other is waited for.
func (c *Cache) waitOut(p string, linked func() bool, look func()) {
	for try := 0; linked(); try++ {
		if try == maxExchanges || c.exchanged != "" {
			c.exchanged = cmp.Or(c.exchanged, p)
			return
		}
		time.Sleep(time.Millisecond) // who exchanges them may have to be let run
		look()
	}
}

// leads says whether the path has a link in it, as far as is known from before.
func (c *Cache) leads(p string) bool {
	for i := 1; i <= len(p); i++ {
		if i < len(p) && p[i] != '/' {
			continue
		}
		dir, name := path.Split(p[:i])
		if c.listedDir(path.Clean(dir), name) {
			continue
		}
		if st, err := c.Lstat(p[:i]); err != nil || st.Type == Link {
			return true
		}
	}
	return false
}

// listedDir says whether a name was listed as a directory's.
func (c *Cache) listedDir(dir, name string) bool {
	e, ok := entry(c.lists[dir].entries, name)
	return ok && e.Type == Dir
}

// Access is FS.Access.
func (c *Cache) Access(p string, mode uint32) bool {
	return (!c.foreign.anyNow() || c.closed(LeadsTo(c, p)) == nil) && c.fs.Access(p, mode)
}

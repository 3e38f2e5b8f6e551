//go:build linux

package files

import (
	"cmp"
	"path"
	"slices"

	"golang.org/x/sys/unix"

	"sbx.example/sbx/broker/internal/host"
	"sbx.example/sbx/broker/plan"
)

func (t *tool) list(a *Answer) error {
	fd, _, err := t.open(unix.O_RDONLY|unix.O_DIRECTORY, unix.S_IFDIR)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	l := t.listing(a)
	err = entries(fd, l.add)
	a.sort()
	return t.named(err)
}

// listing are the entries of an answer, which has a bound on their number and on their length in JSON.
type listing struct {
	a     *Answer
	limit int
	room  int64
}

func (t *tool) listing(a *Answer) listing {
	a.Entries = []Entry{}
	return listing{a, int(cmp.Or(t.q.Limit, usualEntries)), t.q.entriesLength()}
}

// add takes an entry, and says whether there was room for it.
func (l *listing) add(e Entry) bool {
	n := entryLength(len(e.Name))
	if l.a.More = len(l.a.Entries) == l.limit || n > l.room; l.a.More {
		return false
	}
	l.a.Entries = append(l.a.Entries, e)
	l.room -= n
	return true
}

func (a *Answer) sort() {
	slices.SortFunc(a.Entries, func(x, y Entry) int { return cmp.Compare(x.Name, y.Name) })
}

// finder is one search.
type finder struct {
	listing
	pattern string
	looked  int
}

func (t *tool) find(a *Answer) error {
	fd, _, err := t.open(unix.O_RDONLY|unix.O_DIRECTORY, unix.S_IFDIR)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	f := finder{listing: t.listing(a), pattern: string(t.q.Pattern)}
	err = f.search(fd, "", int(cmp.Or(int64(t.q.Depth), usualDepth)))
	a.sort()
	return t.named(err)
}

// search looks at a directory, and at what lies below it. No link is followed.
func (f *finder) search(dir int, at string, depth int) error {
	var below []string
	err := entries(dir, func(e Entry) bool {
		name := string(e.Name)
		if f.looked++; f.looked > maxLooked {
			f.a.More = true
		} else if ok, _ := path.Match(f.pattern, name); ok {
			f.add(Entry{plan.Bytes(path.Join(at, name)), e.Type})
		}
		if e.Type == "directory" && depth > 1 && len(at)+len(name) < unix.PathMax {
			below = append(below, name)
		} else if e.Type == "directory" {
			f.a.Skipped++
		}
		return !f.a.More
	})
	if err != nil {
		return err
	}
	slices.Sort(below)
	for _, name := range below {
		if f.a.More {
			break
		}
		p := place{dir: dir, name: name}
		fd, err := p.open(unix.O_RDONLY|unix.O_DIRECTORY, unix.S_IFDIR)
		if err == nil {
			err = f.search(fd, path.Join(at, name), depth-1)
			unix.Close(fd)
		}
		if err != nil {
			f.a.Skipped++
		}
	}
	return nil
}

// entries passes the names of a directory on, until each has enough.
func entries(fd int, each func(Entry) bool) error {
	return host.EachEntry(fd, func(e host.Entry) bool { return each(Entry{plan.Bytes(e.Name), typeOf(e.Type)}) })
}

// typeOf words the type of an entry.
func typeOf(t host.Type) string {
	switch t {
	case host.File:
		return "file"
	case host.Dir:
		return "directory"
	case host.Link:
		return "link"
	}
	return "other"
}

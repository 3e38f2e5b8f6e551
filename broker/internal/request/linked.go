package request

import (
	"io/fs"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"sbx.example/sbx/broker/internal/guard"
	"sbx.example/sbx/broker/internal/host"
	"sbx.example/sbx/broker/internal/planner"
)

// A plan hides the other names that secrets have when it is made (planner/hardlinks.go). Here it is asked of one file,
// while a session runs, whether it is a secret.

// secretFiles are the secrets that may have got another name, by tree. They are looked for when a file with several
// names turns up, and again where it got one since.
type secretFiles struct {
	hides []planner.Hide

	mu    sync.Mutex
	found map[string]*search // by tree; "" is what the lists hide
	none  map[linkedFile]bool
}

// search is what was found in a tree.
type search struct {
	at    time.Time
	files map[host.Inode]bool
}

// linkedFile is a file with several names that is none of a secret's. It has what changes when a file gets a name, or
// is another one of the same number.
type linkedFile struct {
	host.Inode
	born  int64
	nlink uint64
	tree  string
}

const (
	// looksEvery bounds how often is looked for them: tools link files by the thousand. A secret that the host makes
	// and links within that time is found when the file is looked up again.
	looksEvery  = time.Second
	clockTick   = 50 * time.Millisecond // of a file system, at most
	maxLooked   = 1 << 14               // files that are remembered
	maxHiddenIn = 1000                  // names that are looked at in a hidden directory
)

// Other says whether a file that is not mounted is another name of a secret around it: in the directory of the home's,
// or of the root's, that it lies in.
func (g *NameGate) Other(p string) bool {
	top := g.Top(p)
	first, _, _ := strings.Cut(strings.TrimPrefix(strings.TrimPrefix(p, top), "/"), "/")
	return g.Linked(p, filepath.Join(top, first), top)
}

// Linked says whether a file is another name (hard link) of a secret in a tree, where names are judged relative to top,
// or of what the lists hide.
func (g *NameGate) Linked(p, tree, top string) bool {
	st, err := host.FS{}.Lstat(p)
	if err != nil || st.Type != host.File || st.Nlink < 2 || g.Config(p) { // which is shown without what is in it
		return false
	}
	stamp, err := host.FS{}.Stamp(p)
	if err != nil {
		return false
	}
	l, id := &g.linked, st.Inode()
	l.mu.Lock()
	defer l.mu.Unlock()
	is := linkedFile{id, stamp.Born, st.Nlink, tree}
	if l.none[is] {
		return false
	}
	changed := time.Unix(0, stamp.Changed)
	listed, in := l.in("", changed, l.listed), l.in(tree, changed, func(note func(string)) {
		if top != "" {
			g.secretsIn(tree, top, note)
		}
	})
	switch {
	case listed.files[id] || in.files[id]:
		return true
	case listed.precedes(changed) || in.precedes(changed):
		return false
	}
	if len(l.none) >= maxLooked || l.none == nil {
		l.none = map[linkedFile]bool{}
	}
	l.none[is] = true
	return false
}

// precedes says whether a file that was changed then may have got a name since.
func (s *search) precedes(changed time.Time) bool { return !changed.Before(s.at.Add(-clockTick)) }

// in is what look finds in a tree, or has found since a file was changed. l.mu is held.
func (l *secretFiles) in(tree string, changed time.Time, look func(note func(p string))) *search {
	if have := l.found[tree]; have != nil && (!have.precedes(changed) || time.Since(have.at) < looksEvery) {
		return have
	}
	now := &search{time.Now(), map[host.Inode]bool{}}
	look(func(p string) {
		if st, err := (host.FS{}).Lstat(p); err == nil && st.Type == host.File {
			now.files[st.Inode()] = true
		}
	})
	if l.found == nil {
		l.found = map[string]*search{}
	}
	l.found[tree] = now
	return now
}

// listed notes what the lists hide, and what lies in it.
func (l *secretFiles) listed(note func(string)) {
	for _, h := range l.hides {
		if !h.Secret {
			continue
		}
		note(h.Path)
		list, err := host.FS{}.ReadDir(h.Path)
		if err != nil || len(list) > maxHiddenIn {
			continue
		}
		for _, e := range list {
			note(filepath.Join(h.Path, e.Name))
		}
	}
}

// secretsIn notes the secrets in a tree, by their own names.
func (g *NameGate) secretsIn(tree, top string, note func(string)) {
	n := 0
	_ = g.foreign.Walk(tree, func(p string, e fs.DirEntry, err error) error {
		if n++; n > searchedNames {
			return errHolds
		}
		if e != nil && err == nil {
			for _, config := range g.tokensOf(repositoryAt(p, e)) {
				note(config)
			}
		}
		if e == nil || err != nil || e.IsDir() {
			if e != nil && e.IsDir() && (err != nil || p != tree && (guard.Dependency(e.Name()) || e.Name() == ".git")) {
				return fs.SkipDir
			}
			return nil
		}
		rel := strings.TrimPrefix(strings.TrimPrefix(p, top), "/")
		if guard.SecretAt(rel, false).Secret != nil && g.Judge.At(top, rel).Hidden {
			note(p)
		}
		return nil
	})
}

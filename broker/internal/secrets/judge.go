package secrets

import (
	"path"
	"sync"
	"time"

	"sbx.example/sbx/broker/internal/guard"
	"sbx.example/sbx/broker/internal/host"
)

// FS is the file system that is judged; host.FS is the real one. Neither follows a link.
type FS interface {
	// Stamp tells the identity of a file and when it changed last.
	Stamp(path string) (host.Stamp, error)
	// Peek reads at most n bytes of a regular file.
	Peek(path string, off int64, n int) ([]byte, error)
	ReadDir(path string) ([]host.Entry, error)
}

// Object is one file as it was found, so that what is judged is what is shown.
type Object struct {
	host.Stamp
	// Read reads at most n bytes from the start.
	Read func(n int) ([]byte, error)
	// Environment says whether a directory is a Python environment. May be nil.
	Environment func() bool
}

// Because says what settled a finding.
type Because string

// What settles a finding.
const (
	NoName     Because = ""           // the name is no secret's
	Dependency Because = "dependency" // it lies in a directory of dependencies
	Contents   Because = "contents"   // they are a credential, or they are none
	Name       Because = "name"
	Own        Because = "own"      // the sandbox made it, and nobody else has changed it since
	Tracked    Because = "tracked"  // git has exactly these contents
	Modified   Because = "modified" // git tracks it, with other contents: it exists and cannot be looked at
	Odd        Because = "odd"      // no file, link or directory
	Unreadable Because = "unreadable"
)

// Finding is whether something is hidden, and why.
type Finding struct {
	Hidden  bool
	Because Because
	Why     string // of the name, for people
	Rule    string // the pattern of the name
}

// Reason words a finding.
func (f Finding) Reason() string {
	switch f.Because {
	case Dependency:
		return "what lies in " + f.Rule + " is a tool's"
	case Contents:
		if f.Hidden {
			return f.Why + ", as its contents say"
		}
		return "its contents are no credential"
	case Own:
		return "a program in the sandbox made it, and the host has not changed it since"
	case Tracked:
		return "git tracks it with exactly these contents"
	case Modified:
		return f.Why + "; git tracks it, with other contents than it has now"
	case Unreadable:
		return f.Why + ", and its contents could not be read"
	}
	return f.Why
}

// Judge judges files. It may be used by several goroutines.
type Judge struct {
	fs  FS
	own *Ledger
	dir string // a linked worktree's repository, outside of the tree

	mu    sync.Mutex
	heads map[reading]bool // what contents hold, of files that have not changed for a while
	known map[comparison]Because
	index string // the index that was read last, with its identity
	stamp host.Stamp
	text  []byte
}

// New returns a judge. Own may be nil: nothing is the sandbox's. GitDir is the repository of a linked worktree, "" for
// none.
func New(fs FS, own *Ledger, gitDir string) *Judge {
	return &Judge{fs: fs, own: own, dir: gitDir, heads: map[reading]bool{}, known: map[comparison]Because{}}
}

// Own is the record of what the sandbox made, or nil.
func (j *Judge) Own() *Ledger { return j.own }

// At judges what stands at rel below the directory root.
func (j *Judge) At(root, rel string) Finding {
	p := path.Join(root, rel)
	if c := guard.SecretAt(rel, false); c.Secret == nil {
		return free(c)
	}
	st, err := j.fs.Stamp(p)
	if host.NotExist(err) {
		return j.absent(rel)
	}
	if err != nil {
		return unreadable(guard.SecretAt(rel, false))
	}
	return j.Of(root, rel, Object{Stamp: st, Read: func(n int) ([]byte, error) { return j.fs.Peek(p, 0, n) },
		Environment: func() bool { return environment(j.fs, p) }})
}

// absent judges a name that nothing has: it would be hidden if the host gave it to a file.
func (j *Judge) absent(rel string) Finding {
	c := guard.SecretAt(rel, false)
	if c.Secret == nil {
		return free(c)
	}
	return Finding{Hidden: c.Holds == nil, Because: Name, Why: c.Why, Rule: c.Pattern}
}

func free(c guard.Candidate) Finding {
	if c.In != "" {
		return Finding{Because: Dependency, Rule: path.Base(c.In)}
	}
	return Finding{}
}

func unreadable(c guard.Candidate) Finding {
	return Finding{Hidden: true, Because: Unreadable, Why: c.Why, Rule: c.Pattern}
}

// environment says whether a directory is a Python environment, which people call .env as well.
func environment(fs FS, dir string) bool {
	st, err := fs.Stamp(dir + "/pyvenv.cfg")
	return err == nil && st.Type == host.File
}

// Of judges an object that was found at rel below root.
func (j *Judge) Of(root, rel string, o Object) Finding {
	c := guard.SecretAt(rel, o.Type == host.Dir)
	if c.Secret == nil {
		return free(c)
	}
	f := Finding{Hidden: true, Because: Name, Why: c.Why, Rule: c.Pattern}
	switch {
	case o.Type != host.File && o.Type != host.Dir && o.Type != host.Link:
		return f.open(Odd)
	case j.own.Has(o.Stamp):
		return f.open(Own)
	case c.Keeper != "" && environment(j.fs, path.Join(root, c.Keeper)):
		return f.open(Contents)
	case o.Type == host.Dir:
		if o.Environment != nil && o.Environment() {
			return f.open(Contents)
		}
		if j.tracksBelow(root, rel) {
			return f.open(Tracked)
		}
		return f
	}
	if c.Holds != nil {
		if o.Type == host.Link { // what it leads to is judged by its own name
			return f.open(Contents)
		}
		if c.Most > 0 && o.Size > c.Most {
			return f.open(Contents)
		}
		holds, err := j.holdsOne(c.Secret, o)
		if err != nil {
			return unreadable(c)
		}
		if f.Because = Contents; !holds {
			return f.open(Contents)
		}
	}
	switch j.tracks(root, rel, o) {
	case Tracked:
		return f.open(Tracked)
	case Modified:
		f.Because = Modified
	}
	return f
}

// remembered is how many answers are kept, and calm how long a file must not have changed before one is: times of
// change are coarse.
const (
	remembered = 4096
	calm       = 2 * time.Second
)

// reading is what an answer about contents is for.
type reading struct {
	host.Stamp
	rule string
}

// holdsOne judges the contents of a file.
func (j *Judge) holdsOne(row *guard.Secret, o Object) (bool, error) {
	key := reading{o.Stamp, row.Pattern}
	j.mu.Lock()
	was, ok := j.heads[key]
	j.mu.Unlock()
	if ok {
		return was, nil
	}
	head, err := o.Read(guard.HeadSize)
	if err != nil {
		return true, err
	}
	is := row.Holds(head)
	if time.Now().UnixNano()-o.Changed > int64(calm) {
		j.mu.Lock()
		if len(j.heads) >= remembered {
			clear(j.heads)
		}
		j.heads[key] = is
		j.mu.Unlock()
	}
	return is, nil
}

func (f Finding) open(b Because) Finding {
	f.Hidden, f.Because = false, b
	return f
}

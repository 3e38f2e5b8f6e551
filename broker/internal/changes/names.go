//go:build linux

package changes

import (
	"bufio"
	"encoding/json"
	"io"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"sbx.example/sbx/broker/internal/guard"
	"sbx.example/sbx/broker/plan"
)

// namesFile is the file, beside a session's layers, that says which names the host had below their places at its start,
// and which modes its directories. What a layer holds does not say it: a file that was saved as editors do looks like a
// new one.
const namesFile = "overlay/names.jsonl"

// promptly are how many names are noted in any case; the rest are as long as the program runs, so that nobody waits for
// them. What lies near the top comes first, and what tools made last. Where none were noted a directory that the host
// has changed since counts as one of which it may have deleted anything.
const promptly = 100_000

// listing is a line of namesFile: what one directory of the host's held.
type listing struct {
	Target plan.Bytes   `json:"target"`
	Dir    plan.Bytes   `json:"dir"` // below Target, "." for itself
	Mode   uint32       `json:"mode"`
	Names  []plan.Bytes `json:"names"` // of a directory with a "/"
}

// place is what is known of a directory of the host's as it was when the session began.
type place struct {
	mode  uint32 // see perm
	names []string
}

// NoteNames remembers the names in the places of a session's layers, so that what the host deletes or moves away later
// can be told from what the session makes. It takes its time as long as more says so.
func NoteNames(p *plan.Plan, dir string, more func() bool) error {
	layers, err := Layers(p, dir, false)
	if err != nil || len(layers) == 0 {
		return err
	}
	return noteNames(layers, dir, more)
}

func noteNames(layers []Layer, dir string, more func() bool) error {
	f, err := os.OpenFile(filepath.Join(dir, namesFile), os.O_WRONLY|os.O_CREATE|os.O_EXCL|unix.O_NOFOLLOW, 0o600)
	if err != nil {
		return err
	}
	w := bufio.NewWriter(f)
	left := promptly
	for i := range layers {
		if err = layers[i].list(w, &left, more); err != nil {
			break
		}
	}
	if ferr := w.Flush(); err == nil {
		err = ferr
	}
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	return err
}

// list writes a line for each directory below the layer's place that can be read and is as it was when the session
// began. Where left is used up the rest has none, unless there is more time.
func (l *Layer) list(w io.Writer, left *int, more func() bool) error {
	root, err := openRoot(l.Target)
	if err != nil {
		return nil
	}
	defer unix.Close(root)
	enc := json.NewEncoder(w)
	near, far := []string{"."}, []string(nil)
	for len(near)+len(far) > 0 && (*left > 0 || more()) {
		if len(near) == 0 {
			near, far = far, nil
		}
		rel := near[0]
		near = near[1:]
		line, known, err := l.listing(root, rel)
		if err != nil {
			continue
		}
		*left -= len(line.Names)
		for _, n := range line.Names {
			name, isDir := strings.CutSuffix(string(n), "/")
			switch sub := path.Join(rel, name); {
			case !isDir || isObjects(sub):
			case name == ".git" || guard.Dependency(name):
				far = append(far, sub)
			default:
				near = append(near, sub)
			}
		}
		if !known {
			continue
		}
		if err := enc.Encode(line); err != nil {
			return err
		}
	}
	return nil
}

// listing is the line of the directory rel below root. It is not known of one that has changed since the session began:
// something of it may be gone already.
func (l *Layer) listing(root int, rel string) (line listing, known bool, err error) {
	list, st, err := entriesBelow(root, rel)
	line = listing{Target: plan.Bytes(l.Target), Dir: plan.Bytes(rel), Mode: perm(&st),
		Names: make([]plan.Bytes, 0, len(list))}
	for _, e := range list {
		name := e.Name()
		if e.IsDir() {
			name += "/"
		}
		line.Names = append(line.Names, plan.Bytes(name))
	}
	return line, !after(st.Ctim, l.since), err
}

// noteNames notes a directory of the host's that was not, before its first name changes: afterwards nobody could tell
// this change from one of the host's.
func (a *applier) noteNames(rel string) error {
	if a.listed[rel] {
		return nil
	}
	a.listed[rel] = true
	line, known, err := a.layer.listing(a.host, rel)
	if err != nil || !known {
		return nil // so it is the next time
	}
	return noteLine(a.opt.Dir, namesFile, line)
}

// isObjects says whether rel is where git keeps what it names by the contents, or lies in there: whether the host has
// deleted such a file makes no difference.
func isObjects(rel string) bool { return strings.Contains("/"+rel+"/", "/.git/objects/") }

// entriesBelow lists the directory rel below root, and returns what it is after that.
func entriesBelow(root int, rel string) (list []os.DirEntry, st unix.Stat_t, err error) {
	fd, err := openBelow(root, rel)
	if err != nil {
		return nil, st, err
	}
	f := os.NewFile(uintptr(fd), "directory")
	defer f.Close()
	if list, err = f.ReadDir(-1); err == nil {
		err = unix.Fstat(fd, &st)
	}
	return list, st, err
}

// notedNames reads what NoteNames left in a session's folder, by target and directory. A line that is not
// whole is none.
func notedNames(dir string) map[string]map[string]place {
	f, err := os.OpenFile(filepath.Join(dir, namesFile), os.O_RDONLY|unix.O_NOFOLLOW, 0)
	if err != nil {
		return nil
	}
	defer f.Close()
	out := map[string]map[string]place{}
	for r := bufio.NewReader(f); err == nil; {
		var line []byte
		line, err = r.ReadBytes('\n')
		var l listing
		if json.Unmarshal(line, &l) != nil {
			continue
		}
		of := out[string(l.Target)]
		if of == nil {
			of = map[string]place{}
			out[string(l.Target)] = of
		}
		names := make([]string, 0, len(l.Names))
		for _, n := range l.Names {
			names = append(names, string(n))
		}
		slices.Sort(names)
		of[string(l.Dir)] = place{l.Mode, names}
	}
	return out
}

// What is said of what the host had and has no more, and of what it may have had.
const (
	gone    = "deleted on the host meanwhile"
	unknown = "the host changed the directory around it meanwhile, and what was in there before is not known"
)

// missing says what is wrong with a name that the host has not: it had it when the session began, or a directory above
// that, by what was noted then and by the mark that the kernel leaves on a directory of the host's that was written to.
// host is the host's directory, -1 where there is none.
func (s *scanner) missing(c *Change, rel, name string, upper, host int) string {
	if s.lost != "" && (s.lost == "." || strings.HasPrefix(rel, s.lost+"/")) {
		return gone
	}
	if s.had(path.Dir(rel), name) || s.had(path.Dir(rel), name+"/") || c.Kind == Dir && s.l.existed && !s.l.mixed &&
		xattrOf(upper, name, "user.overlay.origin") != "" {
		if c.Kind == Dir {
			s.lost = rel
		}
		return gone
	}
	var st unix.Stat_t
	if host >= 0 && unix.Fstat(host, &st) == nil && after(st.Ctim, s.l.since) && s.unnoted(path.Dir(rel)) {
		return unknown
	}
	return ""
}

// had says whether it was noted that the host's directory had a name, which ends in "/" if that was a directory.
func (s *scanner) had(dir, name string) bool {
	_, ok := slices.BinarySearch(s.noted[dir].names, name)
	return ok
}

// unnoted says whether the host had a directory when the session began of which nobody knows what was in it.
func (s *scanner) unnoted(dir string) bool {
	if !s.l.existed || isObjects(dir) {
		return false
	}
	for at, next := dir, ""; ; at, next = path.Dir(at), path.Base(at) {
		if _, ok := s.noted[at]; ok {
			return at != dir && s.had(at, next+"/")
		}
		if at == "." {
			return true
		}
	}
}

// keepMode leaves the mode of the host's directory alone where the host alone has changed it since the session began,
// and calls it a conflict where both have, or may have. c is about a directory that both have.
func (s *scanner) keepMode(c *Change, rel string) {
	began, ok := s.noted[rel]
	switch {
	case c.OldMode == c.NewMode || ok && began.mode == c.OldMode ||
		!ok && !(after(c.old.Ctim, s.l.since) && s.unnoted(rel)):
	case ok && (began.mode^c.NewMode)&^unix.S_ISGID == 0:
		c.NewMode = c.OldMode
	case ok:
		c.Changed, c.Since = true, "the host changed it after the session began"
	default:
		c.Changed, c.Since = true, "the host changed it or what is in it meanwhile, and its mode before is not known"
	}
}

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
// and which modes its directories.
// What a layer holds does not say it: a file that was saved as editors do looks like a new one.
const namesFile = "overlay/names.jsonl"

// maxNames bounds how many are noted: what lies near the top first, and what tools made last.
const maxNames = 100_000

// listing is a line of namesFile: what one directory of the host's held.
type listing struct {
	Target plan.Bytes   `json:"target"`
	Dir    plan.Bytes   `json:"dir"` // below Target, "." for itself
	Mode   uint32       `json:"mode"`
	Names  []plan.Bytes `json:"names"`
}

// place is what is known of a directory of the host's as it was when the session began.
type place struct {
	mode  uint32 // see perm
	names []string
}

// NoteNames remembers the names in the places of a session's layers, so that what the host deletes or moves away later
// can be told from what the session makes.
func NoteNames(p *plan.Plan, dir string) error {
	layers, err := Layers(p, dir, false)
	if err != nil || len(layers) == 0 {
		return err
	}
	return noteNames(layers, dir)
}

func noteNames(layers []Layer, dir string) error {
	f, err := os.OpenFile(filepath.Join(dir, namesFile), os.O_WRONLY|os.O_CREATE|os.O_EXCL|unix.O_NOFOLLOW, 0o600)
	if err != nil {
		return err
	}
	w := bufio.NewWriter(f)
	left := maxNames
	for i := range layers {
		if err = layers[i].list(w, &left); err != nil {
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

// list writes a line for each directory below the layer's place that can be read. Where left is used up the rest has
// none.
func (l *Layer) list(w io.Writer, left *int) error {
	root, err := openRoot(l.Target)
	if err != nil {
		return nil
	}
	defer unix.Close(root)
	enc := json.NewEncoder(w)
	near, far := []string{"."}, []string(nil)
	for len(near)+len(far) > 0 && *left > 0 {
		if len(near) == 0 {
			near, far = far, nil
		}
		rel := near[0]
		near = near[1:]
		list, mode, err := entriesBelow(root, rel)
		if err != nil || len(list) > *left {
			continue
		}
		*left -= len(list)
		line := listing{Target: plan.Bytes(l.Target), Dir: plan.Bytes(rel), Mode: mode,
			Names: make([]plan.Bytes, 0, len(list))}
		for _, e := range list {
			name := e.Name()
			line.Names = append(line.Names, plan.Bytes(name))
			switch sub := path.Join(rel, name); {
			case !e.IsDir() || strings.HasSuffix("/"+sub, "/.git/objects"): // which git alone names
			case name == ".git" || guard.Dependency(name):
				far = append(far, sub)
			default:
				near = append(near, sub)
			}
		}
		if err := enc.Encode(line); err != nil {
			return err
		}
	}
	return nil
}

// entriesBelow lists the directory rel below root, and returns its mode.
func entriesBelow(root int, rel string) ([]os.DirEntry, uint32, error) {
	fd, err := openBelow(root, rel)
	if err != nil {
		return nil, 0, err
	}
	f := os.NewFile(uintptr(fd), "directory")
	defer f.Close()
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return nil, 0, err
	}
	list, err := f.ReadDir(-1)
	return list, perm(&st), err
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

// gone is what is said of what the host had and has no more.
const gone = "deleted on the host meanwhile"

// wasThere says whether the host had, when the session began, what it has no longer at rel, or a directory above that:
// by what was noted then, and by the mark that the kernel leaves on a directory of the host's that was written to.
func (s *scanner) wasThere(c *Change, rel, name string, upper int) bool {
	if s.lost != "" && (s.lost == "." || strings.HasPrefix(rel, s.lost+"/")) {
		return true
	}
	_, noted := slices.BinarySearch(s.noted[path.Dir(rel)].names, name)
	there := noted || c.Kind == Dir && s.l.existed && xattrOf(upper, name, "user.overlay.origin") != ""
	if there && c.Kind == Dir {
		s.lost = rel
	}
	return there
}

// keepMode leaves the mode of the host's directory alone where the host alone has changed it since the session began,
// and calls it a conflict where both have. c is about a directory that both have.
func (s *scanner) keepMode(c *Change, rel string) {
	began, ok := s.noted[rel]
	if !ok || c.OldMode == c.NewMode || began.mode == c.OldMode {
		return
	}
	if (began.mode^c.NewMode)&^unix.S_ISGID == 0 {
		c.NewMode = c.OldMode
		return
	}
	c.Changed, c.Since = true, "the host changed it after the session began"
}

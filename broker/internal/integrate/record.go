package integrate

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Record is what an integration has written, as much as it takes to take it back.
type Record struct {
	Name  string    `json:"name"`
	Files []Written `json:"files"`
	Dirs  []string  `json:"dirs,omitempty"` // that were made for them, the topmost first
}

// Written is one file that was written.
type Written struct {
	Path    string   `json:"path"`
	Sum     string   `json:"sha256"` // of what was written
	Had     bool     `json:"had"`    // there was one before
	Old     []byte   `json:"old,omitempty"`
	OldMode uint32   `json:"old_mode,omitempty"`
	Members []Member `json:"members,omitempty"` // what was set in it, where it is JSON
}

// Records is the directory of records, a file for each integration.
type Records struct{ Dir string }

// file is the record's place. The name of an integration of a file of somebody's holds that file's path.
func (r Records) file(name string) string {
	return filepath.Join(r.Dir, strings.NewReplacer("%", "%25", "/", "%2F").Replace(name)+".json")
}

// Read returns the record of an integration; nil: there is none.
func (r Records) Read(name string) (*Record, error) {
	b, _, err := read(r.file(name))
	if b == nil || err != nil {
		return nil, err
	}
	var rec Record
	if err := json.Unmarshal(b, &rec); err != nil {
		return nil, fmt.Errorf("the record %s: %w", r.file(name), err)
	}
	return &rec, nil
}

// All returns every record, by name.
func (r Records) All() ([]*Record, error) {
	entries, err := os.ReadDir(r.Dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var out []*Record
	for _, e := range entries {
		name, ok := strings.CutSuffix(e.Name(), ".json")
		if !ok || strings.HasPrefix(name, ".") {
			continue
		}
		rec, err := r.Read(strings.NewReplacer("%2F", "/", "%25", "%").Replace(name))
		if err != nil {
			return nil, err
		}
		if rec != nil {
			out = append(out, rec)
		}
	}
	return out, err
}

// written is what each integration that has written a file knows of it.
func (r Records) written(path string) (out []Written, err error) {
	all, err := r.All()
	for _, rec := range all {
		if i := slices.IndexFunc(rec.Files, func(w Written) bool { return w.Path == path }); i >= 0 {
			out = append(out, rec.Files[i])
		}
	}
	return out, err
}

// save writes a record before what it is about is written: whatever a kill leaves can be taken back.
func (r Records) save(rec *Record) error {
	if err := os.MkdirAll(r.Dir, 0o700); err != nil {
		return err
	}
	b, err := json.MarshalIndent(rec, "", "  ")
	if err != nil {
		return err
	}
	return write(r.file(rec.Name), append(b, '\n'), 0o600)
}

// Outcome is what became of one file.
type Outcome struct {
	Path string `json:"path"`
	What string `json:"what"`
}

// What can become of a file.
const (
	Made     = "written"
	Changed  = "changed"
	Unneeded = "says that already"
	Removed  = "removed"
	Restored = "as it was"
	Edited   = "taken back, and changes since then kept"
	Kept     = "kept: it was changed since"
	Shared   = "kept: another integration needs it"
	Gone     = "not there any more"
)

// Undo takes an integration back, and forgets it. What a person has changed since stays.
func (r Records) Undo(rec *Record) ([]Outcome, error) {
	var out []Outcome
	for i := len(rec.Files) - 1; i >= 0; i-- {
		w := &rec.Files[i]
		what, err := r.takeBack(rec, w)
		if err != nil {
			return out, err
		}
		out = append(out, Outcome{w.Path, what})
	}
	if err := os.Remove(r.file(rec.Name)); err != nil {
		return out, err
	}
	for i := len(rec.Dirs) - 1; i >= 0; i-- {
		if os.Remove(rec.Dirs[i]) == nil { // it stays where something is in it
			continue
		}
		if err := r.leave(rec.Dirs[i]); err != nil {
			return out, err
		}
	}
	return out, nil
}

// tell has the other integrations that have written the same files know what these hold now: the last that goes takes
// them away.
func (r Records) tell(rec *Record) error {
	all, err := r.All()
	for _, other := range all {
		told := false
		for i := range other.Files {
			j := slices.IndexFunc(rec.Files, func(w Written) bool { return w.Path == other.Files[i].Path })
			if j >= 0 && len(other.Files[i].Members) == 0 && other.Files[i].Sum != rec.Files[j].Sum {
				other.Files[i].Sum, told = rec.Files[j].Sum, true
			}
		}
		if told && err == nil {
			err = r.save(other)
		}
	}
	return err
}

// leave has another integration that has a file in a directory take that away when it goes.
func (r Records) leave(dir string) error {
	all, err := r.All()
	for _, other := range all {
		if slices.ContainsFunc(other.Files, func(w Written) bool { return strings.HasPrefix(w.Path, dir+"/") }) {
			other.Dirs = append([]string{dir}, other.Dirs...)
			return r.save(other)
		}
	}
	return err
}

func (r Records) takeBack(rec *Record, w *Written) (string, error) {
	if all, err := r.written(w.Path); err != nil || len(all) > 1 && len(w.Members) == 0 {
		return Shared, err
	}
	now, err := sum(w.Path)
	switch {
	case err != nil:
		return "", err
	case now == "":
		return Gone, nil
	case now == w.Sum && w.Had:
		return Restored, write(w.Path, w.Old, w.OldMode)
	case now == w.Sum:
		return Removed, os.Remove(w.Path)
	case len(w.Members) == 0 && !w.Had:
		return Kept, nil
	}
	text, mode, err := read(w.Path)
	if err != nil {
		return "", err
	}
	if w.Had && string(text) == string(w.Old) {
		return Restored, nil // it was never written
	}
	taken := false
	if len(w.Members) == 0 { // goose's
		text, taken = withoutSbx(string(text), string(w.Old))
	} else {
		text, taken, err = unsetAll(text, w.Members)
	}
	if err != nil || !taken { // it is not JSON any more, or nothing of it is sbx's
		return Kept, nil
	}
	if !w.Had && same(text, []byte("{}")) {
		return Removed, os.Remove(w.Path)
	}
	return Edited, write(w.Path, text, mode)
}

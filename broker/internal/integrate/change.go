package integrate

import (
	"bytes"
	"errors"
	"fmt"
	"path/filepath"
	"slices"

	"sbx.example/sbx/broker/internal/changes"
)

// Change is one file as an integration will write it.
type Change struct {
	file
	Old     []byte // nil: there is none
	New     []byte
	oldMode uint32
	members []Member
	left    []string // what of it runs outside all the same
	differs bool
}

// edit is a settings file while it is changed.
type edit struct {
	text    []byte
	members []Member
	left    []string
}

func (e *edit) set(value any, path ...string) error {
	text, m, err := set(e.text, path, value)
	if err == nil && (m.Old == nil || !same(m.Old, m.New)) {
		e.text, e.members = text, append(e.members, m)
	}
	return err
}

// setting sets one member of a file.
func setting(value any, path ...string) func(*edit) error {
	return func(e *edit) error { return e.set(value, path...) }
}

// Plan computes what an integration will write. Nothing is written.
func (r Records) Plan(files []file) ([]Change, error) {
	var out []Change
	for _, f := range files {
		c, err := r.plan(f)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", f.path, err)
		}
		out = append(out, c)
	}
	return out, nil
}

func (r Records) plan(f file) (c Change, err error) {
	c = Change{file: f, New: f.text}
	if f.edit == nil {
		return c, r.planOwn(&c)
	}
	if c.Old, c.oldMode, err = read(f.path); err != nil {
		return c, err
	}
	e := edit{text: c.Old}
	if err := f.edit(&e); err != nil {
		return c, err
	}
	c.New, c.members, c.left = e.text, e.members, e.left
	if c.mode = c.oldMode; c.Old == nil {
		c.mode = 0o600
	}
	c.differs = !bytes.Equal(c.Old, c.New)
	return c, nil
}

// planOwn is for a file of sbx's own. One that is there was written by an integration, or is not touched.
func (r Records) planOwn(c *Change) error {
	now, err := sum(c.path)
	if err != nil {
		return err
	}
	want, err := sumOf(bytes.NewReader(c.New))
	if err != nil {
		return err
	}
	c.differs = now != want
	if now == "" {
		return nil
	}
	all, err := r.written(c.path)
	switch {
	case err != nil:
	case len(all) == 0:
		err = errors.New("it is there already, and sbx has not written it: move it away first")
	case c.differs && !slices.ContainsFunc(all, func(w Written) bool { return w.Sum == now }):
		err = errors.New("it was changed since sbx wrote it: move it away first")
	}
	return err
}

// Diff says in a unified diff what will be changed.
func (c *Change) Diff() string {
	if !c.differs {
		return ""
	}
	return changes.Unified(c.path, c.Old, c.New)
}

// Apply writes the changes of an integration, with a record of them.
func (r Records) Apply(name string, list []Change) (out []Outcome, err error) {
	rec := &Record{Name: name}
	for i := range list {
		c := &list[i]
		w := Written{Path: c.path, Had: c.Old != nil, Old: c.Old, OldMode: c.oldMode, Members: c.members}
		if w.Sum, err = sumOf(bytes.NewReader(c.New)); err != nil {
			return nil, err
		}
		made, err := makeDirs(filepath.Dir(c.path))
		if err != nil {
			return nil, err
		}
		rec.Files, rec.Dirs = append(rec.Files, w), append(rec.Dirs, made...)
	}
	if err := r.save(rec); err != nil {
		return nil, err
	}
	for i := range list {
		c := &list[i]
		what := Unneeded
		if c.differs {
			if err := c.write(); err != nil {
				return out, err
			}
			if what = Made; c.Old != nil {
				what = Changed
			}
		}
		out = append(out, Outcome{c.path, what})
	}
	return out, r.tell(rec)
}

func (c *Change) write() error {
	if now, _, err := read(c.path); c.edit != nil && (err != nil || !bytes.Equal(now, c.Old)) {
		return errors.Join(err, fmt.Errorf("%s was changed meanwhile: try again", c.path))
	}
	return write(c.path, c.New, c.mode)
}

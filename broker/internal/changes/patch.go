//go:build linux

package changes

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// maxPatch is the size of a file from which it is said to differ, and not how.
const maxPatch = 4 << 20

// Patch writes the change as a unified diff with git's headers, which git apply reads. Paths are relative to
// dir where they lie below it. Of a file that is no text it is only said that it differs, unless whole is set: git
// apply refuses that. It refuses names in .git as well, so with whole what changed there is a comment. What cannot be
// read is named instead, and marked as Unread.
func (c *Change) Patch(w *bytes.Buffer, dir string, whole bool) {
	was, ofGit := w.Len(), slices.Contains(strings.Split(c.rel, "/"), ".git")
	if err := c.patch(w, dir, whole && !ofGit); err != nil {
		w.Truncate(was)
		c.unreadable("the file", err)
		fmt.Fprintf(w, "# %s\n", c.In(dir))
	}
	if text := strings.TrimSuffix(w.String()[was:], "\n"); whole && ofGit && !strings.HasPrefix(text, "# ") {
		w.Truncate(was)
		fmt.Fprintf(w, "# %s\n", strings.ReplaceAll(text, "\n", "\n# "))
	}
}

func (c *Change) patch(w *bytes.Buffer, dir string, whole bool) error {
	if c.Op == Deleted && c.Kind == Dir {
		return c.patchGone(w, dir, whole)
	}
	same := (c.Op == Mode || c.Attributes) && gitMode(c.OldMode) == gitMode(c.NewMode) // git knows two modes
	// what the host hid is not shown here either
	hidden := c.Risk == Secret || c.Risk == Broken
	if c.Op == Replaced && !hidden {
		return c.patchReplaced(w, dir, whole)
	}
	if same || hidden || c.Kind == Dir || c.Kind == Special {
		fmt.Fprintf(w, "# %s\n", c.In(dir))
		return nil
	}
	p, from := within(c.Path, dir), within(c.Path, dir)
	if c.From != "" {
		from = within(c.From, dir)
	}
	fmt.Fprintf(w, "diff --git %s %s\n", gitName("a/"+from), gitName("b/"+p))
	old, now := c.Op != Added && c.Op != Renamed, c.Op != Deleted
	switch {
	case c.Op == Renamed:
		if gitMode(c.OldMode) != gitMode(c.NewMode) {
			fmt.Fprintf(w, "old mode 100%03o\nnew mode 100%03o\n", gitMode(c.OldMode), gitMode(c.NewMode))
		}
		fmt.Fprintf(w, "similarity index 100%%\nrename from %s\nrename to %s\n", gitName(from), gitName(p))
		return nil
	case !old:
		fmt.Fprintf(w, "new file mode %s\n", modeOf(c.Kind, c.NewMode))
	case !now:
		fmt.Fprintf(w, "deleted file mode %s\n", modeOf(kindOf(&c.old), c.OldMode))
	case modeOf(kindOf(&c.old), c.OldMode) != modeOf(c.Kind, c.NewMode):
		fmt.Fprintf(w, "old mode %s\nnew mode %s\n", modeOf(kindOf(&c.old), c.OldMode), modeOf(c.Kind, c.NewMode))
	}
	if c.Op == Mode || c.Attributes {
		return nil
	}
	return c.patchText(w, side{gitName("a/" + from), old}, side{gitName("b/" + p), now}, whole)
}

// side is a file before or after a change, as a patch names it.
type side struct {
	name  string
	there bool
}

// patchText shows what of the contents changed, of what is no text only if the whole is wanted.
func (c *Change) patchText(w *bytes.Buffer, was, is side, whole bool) error {
	a, err := c.text(was.there, false)
	if err != nil {
		return err
	}
	b, err := c.text(is.there, true)
	if err != nil {
		return err
	}
	if !was.there {
		was.name = "/dev/null"
	}
	if !is.there {
		is.name = "/dev/null"
	}
	data := bytes.IndexByte(a, 0) >= 0 || bytes.IndexByte(b, 0) >= 0
	if a == nil || b == nil || data && !whole {
		fmt.Fprintf(w, "Binary files %s and %s differ\n", was.name, is.name)
		return nil
	}
	if data {
		if !was.there {
			a = nil
		}
		if !is.there {
			b = nil
		}
		return gitBinary(w, a, b)
	}
	if len(a) == 0 && len(b) == 0 {
		return nil
	}
	fmt.Fprintf(w, "--- %s\n+++ %s\n", was.name, is.name)
	hunks(w, compare(lines(a), lines(b)))
	return nil
}

// patchReplaced shows what went and what came in its place: git takes no other type for a change of a file.
func (c *Change) patchReplaced(w *bytes.Buffer, dir string, whole bool) error {
	went, came := *c, *c
	went.Op, went.Kind, went.Attributes = Deleted, kindOf(&c.old), false
	came.Op, came.OldMode, came.Attributes = Added, 0, false
	if went.Kind != Special {
		if err := went.patch(w, dir, whole); err != nil {
			return err
		}
	}
	if c.Kind == Dir || c.Kind == Special {
		fmt.Fprintf(w, "# %s\n", c.In(dir))
		return nil
	}
	return came.patch(w, dir, whole)
}

// patchGone shows every file of a directory that was deleted.
func (c *Change) patchGone(w *bytes.Buffer, dir string, whole bool) error {
	root, err := openRoot(c.Path)
	if err != nil {
		return err
	}
	defer unix.Close(root)
	list, err := names(root)
	if err != nil {
		return err
	}
	for _, n := range list {
		in := Change{Op: Deleted, Path: c.Path + "/" + n, rel: c.rel + "/" + n, layer: c.layer}
		if lstatAt(root, n, &in.old) != nil || c.layer.hides(in.rel) {
			continue
		}
		if in.Kind = kindOf(&in.old); in.secret() {
			continue
		}
		in.OldMode = perm(&in.old)
		if err := in.patch(w, dir, whole); err != nil {
			return err
		}
	}
	return nil
}

// text reads one side; nil where it is too large to be shown.
func (c *Change) text(there, upper bool) ([]byte, error) {
	if !there {
		return []byte{}, nil
	}
	st := &c.old
	if upper {
		st = &c.now
	}
	if kindOf(st) == Link {
		if upper {
			return []byte(c.Link), nil
		}
		root, err := openRoot(c.layer.Target)
		if err != nil {
			return nil, err
		}
		defer unix.Close(root)
		text, err := readLink(root, c.rel) // its directory was walked without following links
		return []byte(text), err
	}
	if kindOf(st) != File || st.Size > maxPatch {
		return nil, nil
	}
	var out []byte
	err := c.read(upper, func(r io.Reader) (err error) {
		out, err = io.ReadAll(io.LimitReader(r, maxPatch))
		return err
	})
	if out == nil && err == nil {
		out = []byte{}
	}
	return out, err
}

func gitMode(m uint32) uint32 {
	if m&0o100 != 0 {
		return 0o755
	}
	return 0o644
}

func modeOf(k Kind, m uint32) string {
	if k == Link {
		return "120000"
	}
	return fmt.Sprintf("100%03o", gitMode(m))
}

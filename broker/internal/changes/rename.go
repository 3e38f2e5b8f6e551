//go:build linux

package changes

import (
	"crypto/sha256"
	"io"
	"path"
	"slices"

	"golang.org/x/sys/unix"
)

// Renames makes one change of each file that went and one with the same content that came, for people to
// read. What is applied is the list without it.
func Renames(list []Change) []Change {
	type key struct {
		size int64
		sum  [32]byte
	}
	gone := map[int64][]int{}
	for i := range list {
		if c := &list[i]; c.Op == Deleted && c.Kind == File && c.old.Size > 0 {
			gone[c.old.Size] = append(gone[c.old.Size], i)
		}
	}
	sums := map[key]int{}
	hashed := map[int64]bool{}
	dropped := map[int]bool{}
	out := slices.Clone(list)
	for i := range out {
		c := &out[i]
		if c.Op != Added || c.Kind != File || gone[c.Size] == nil {
			continue
		}
		if !hashed[c.Size] {
			hashed[c.Size] = true
			for _, g := range gone[c.Size] {
				if sum, err := hash(&list[g], false); err == nil {
					sums[key{c.Size, sum}] = g
				}
			}
		}
		sum, err := hash(c, true)
		g, ok := sums[key{c.Size, sum}]
		if err != nil || !ok || dropped[g] || list[g].layer != c.layer {
			continue
		}
		dropped[g] = true
		c.Op, c.From, c.OldMode = Renamed, list[g].Path, list[g].OldMode
		if c.Risk == "" && !c.Changed {
			c.Risk, c.Reason, c.Changed, c.Since = list[g].Risk, list[g].Reason, list[g].Changed, list[g].Since
		}
	}
	kept := out[:0]
	for i := range out {
		if !dropped[i] {
			kept = append(kept, out[i])
		}
	}
	return kept
}

func hash(c *Change, upper bool) (sum [32]byte, err error) {
	h := sha256.New()
	err = c.read(upper, func(r io.Reader) error { _, err := io.Copy(h, r); return err })
	copy(sum[:], h.Sum(nil))
	return sum, err
}

// read opens the file as it is in the layer, or as it is on the host.
func (c *Change) read(upper bool, f func(io.Reader) error) error {
	top, st := c.layer.Target, &c.old
	if upper {
		top, st = c.layer.Upper, &c.now
	}
	root, err := openRoot(top)
	if err != nil {
		return err
	}
	defer unix.Close(root)
	dir, err := openBelow(root, path.Dir(c.rel))
	if err != nil {
		return err
	}
	defer unix.Close(dir)
	file, err := openFile(dir, path.Base(c.rel), st)
	if err != nil {
		return err
	}
	defer file.Close()
	return f(file)
}

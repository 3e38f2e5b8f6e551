package session

import (
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"sbx.example/sbx/broker/internal/child"
	"sbx.example/sbx/broker/internal/idmap"
	"sbx.example/sbx/broker/plan"
)

// Layers are the upper and work folders that the plan's mounts name, each after the one that it is in.
func (s *Session) Layers(p *plan.Plan) []child.Dir {
	var out []child.Dir
	add := func(dir string) {
		if d := (child.Dir{Path: dir, Mode: 0o700}); !slices.Contains(out, d) {
			out = append(out, d)
		}
	}
	top := s.Dir + "/overlay/"
	for i := range p.Mounts {
		m := &p.Mounts[i]
		for _, d := range [...]plan.Bytes{plan.Bytes(m.Upper), plan.Bytes(m.Work), plan.Bytes(m.Source)} {
			if d != "" && strings.HasPrefix(string(d), top) {
				add(top[:len(top)-1])
				add(filepath.Dir(string(d)))
				add(string(d))
			}
		}
	}
	return out
}

// removeForeign removes a tree with files of subordinate ids, which containers leave.
func removeForeign(top string) error { return idmap.Remove(top) }

// renameNew renames, and replaces nothing.
func renameNew(from, to string) error {
	return unix.Renameat2(unix.AT_FDCWD, from, unix.AT_FDCWD, to, unix.RENAME_NOREPLACE)
}

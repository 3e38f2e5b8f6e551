//go:build linux

package gatefs

import (
	"strings"
	"testing"

	"sbx.example/sbx/broker/internal/gate/served"
)

func TestTreeRefuses(t *testing.T) {
	for reason, d := range map[string]served.Dir{
		"clean absolute": {Path: "a"}, "host directory": {Path: "/a", Host: "b/"}, "kind Guarded": {Path: "/a",
			Judge: judgeOf()},
		"one path component": {Path: "/a", Children: []served.Child{{Name: "a/b"}}}, "no target": {Path: "/a",
			Children: []served.Child{{Name: "a", Kind: served.Symlink}}},
		"listed twice": {Path: "/a", Children: []served.Child{{Name: "a"}, {Name: "a"}}}, "opening guarded": {Path: "/a",
			Host: "/nonexistent", Kind: served.Guarded},
	} {
		if _, err := newServer(served.Tree{Dirs: []served.Dir{d}},
			Options{}); err == nil || !strings.Contains(err.Error(), reason) {
			t.Errorf("got %v, want %q", err, reason)
		}
	}
	if _, err := newServer(served.Tree{Dirs: []served.Dir{{Path: "/a"}, {Path: "/a"}}}, Options{}); err == nil ||
		!strings.Contains(err.Error(), "twice") {
		t.Errorf("twice: %v", err)
	}
}

package gatefs

import (
	"strings"
	"testing"
)

func TestTreeRefuses(t *testing.T) {
	for reason, d := range map[string]Dir{
		"clean absolute": {Path: "a"}, "host directory": {Path: "/a", Host: "b/"}, "kind Guarded": {Path: "/a",
			Judge: judgeOf()},
		"one path component": {Path: "/a", Children: []Child{{Name: "a/b"}}}, "no target": {Path: "/a",
			Children: []Child{{Name: "a", Kind: Symlink}}},
		"listed twice": {Path: "/a", Children: []Child{{Name: "a"}, {Name: "a"}}}, "opening guarded": {Path: "/a",
			Host: "/nonexistent", Kind: Guarded},
	} {
		if _, err := newServer(Tree{Dirs: []Dir{d}}, Options{}); err == nil || !strings.Contains(err.Error(), reason) {
			t.Errorf("got %v, want %q", err, reason)
		}
	}
	if _, err := newServer(Tree{Dirs: []Dir{{Path: "/a"}, {Path: "/a"}}}, Options{}); err == nil ||
		!strings.Contains(err.Error(), "twice") {
		t.Errorf("twice: %v", err)
	}
}

package guard

import (
	"strconv"
	"testing"
)

// TestSessionPlaces: what was there before is known by its name also when its directory was removed and made again; a
// name that no directory had is free there, unless the directory that was there is elsewhere.
func TestSessionPlaces(t *testing.T) {
	t.Parallel()
	id := func(n uint64) ID { return ID{Dev: 1, Ino: n} }
	top := judge(t, BuiltIn()...).Root()
	root, sub, deep, other := id(1), id(2), id(3), id(4)
	var s Session
	mkdir := func(dir ID, name string, made ID) { s.Mkdir(top, top.Rule(name, ByHost), dir, name, made) }
	s.Removed(sub, "deep", deep)
	s.Removed(root, "sub", sub)
	mkdir(root, "sub", id(10))
	mkdir(id(10), "deep", id(11))
	mkdir(id(10), "new", id(12))
	if s.Own(id(10)) || s.Own(id(11)) || !s.Own(id(12)) {
		t.Error("what was removed and made again is the session's own, or what is new is not")
	}
	if !s.WasThere(root, "SUB") || !s.WasThere(id(10), "deep") || s.WasThere(id(10), "lib64") || s.WasThere(id(11), "x") {
		t.Error("names in what was made again")
	}
	s.Removed(id(10), "deep", id(11)) // and again
	s.Removed(root, "sub", id(10))
	if mkdir(root, "sub", id(13)); s.Own(id(13)) || !s.WasThere(id(13), "deep") || s.WasThere(id(13), "lib64") {
		t.Error("names in what was made a third time")
	}
	s.Left(root, "other", other, never) // it may hold any names
	if mkdir(root, "other", id(20)); s.Own(id(20)) || !s.WasThere(id(20), "x") || s.WasThere(other, "x") {
		t.Error("names in what stands in the place of a directory that was moved")
	}
	if mkdir(id(20), "x", id(21)); s.Own(id(21)) || !s.WasThere(id(21), "y") {
		t.Error("names below that")
	}
	if s.Removed(root, "elsewhere", other); s.WasThere(id(20), "y") {
		t.Error("it was removed, and was empty")
	}
	s.Left(root, "first", id(30), never) // another takes its place, and goes as well
	s.Left(root, "second", id(31), never)
	s.Removed(root, "first", id(31))
	if mkdir(root, "first", id(32)); s.Own(id(32)) || !s.WasThere(id(32), "x") {
		t.Error("of two directories that had a name the first is forgotten")
	}
	undo := s.Demote([]ID{id(12), other})
	if s.Own(id(12)) || !s.WasThere(id(12), "x") {
		t.Error("what was moved to where a directory was is the session's own")
	}
	if undo(); !s.Own(id(12)) || s.WasThere(id(12), "x") || s.Own(other) {
		t.Error("what was not moved after all is not as it was")
	}
}

// TestSessionTakes: a directory takes a place that was another's, or that is looked for; none takes its own.
func TestSessionTakes(t *testing.T) {
	t.Parallel()
	root, docs, lib := ID{Ino: 1}, ID{Ino: 2}, ID{Ino: 3}
	var s Session
	s.Parts = func(dir string) {
		if dir == "/p" { // an index there names it
			s.Expect(root, "part")
		}
	}
	s.Left(root, "docs", docs, never)
	for _, c := range []struct {
		name string
		id   ID
		want bool
	}{{"docs", lib, true}, {"docs", docs, false}, {"new", docs, false}, {"part", docs, true}} {
		if got := s.Takes(root, "/p", c.name, c.id); got != c.want {
			t.Errorf("%d as %s: %v", c.id.Ino, c.name, got)
		}
	}
	s.Expect(root, "docs") // an index names it meanwhile
	if !s.Takes(root, "/p", "docs", docs) {
		t.Error("what comes back to where an index names a directory takes no other's place")
	}
}

// TestLeadsOut: only what is found from the file's own place leads elsewhere from another.
func TestLeadsOut(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		rel, to string
		want    bool
	}{
		{".git", "../.git/modules/x", true}, {"a/.git", "../../.git/modules/x", true}, {"a/.git", "../../moved/.git/x", true},
		{"a/b/.git", "../../.git/modules/x", false}, {"a/.git", "../.git/modules/a", false},
		{".git", "/p/.git/modules/x", false}, {".git", ".git/modules/x", false},
	} {
		if got := LeadsOut(c.rel, []byte("gitdir: "+c.to+"\n")); got != c.want {
			t.Errorf("%s to %s: %v", c.rel, c.to, got)
		}
	}
}

// never is of a directory with something guarded.
func never() bool { return false }

// TestSessionForgets: beyond the bound every place counts as one that was there; what tools delete and make anew is
// not remembered, unless something guarded was in it or a directory left it.
func TestSessionForgets(t *testing.T) {
	t.Parallel()
	var s Session
	root := ID{Ino: 1}
	if s.Removed(root, "node_modules", ID{Ino: 2}); s.WasThere(root, "node_modules") {
		t.Error("packages that are installed anew are not the session's own")
	}
	always := func() bool { return true }
	out, sub := ID{Ino: 3}, ID{Ino: 4}
	if s.Left(root, "dist", out, always); s.WasThere(root, "dist") {
		t.Error("what a build put aside, with nothing guarded in it, is remembered")
	}
	if s.Left(root, "out", out, never); !s.WasThere(root, "out") {
		t.Error("what was put aside with guarded names is not remembered")
	}
	s.Left(out, "sub", sub, never) // it may hold any
	if s.Left(root, "build", out, always); !s.WasThere(root, "build") {
		t.Error("what was emptied by moving a directory out of it is not remembered")
	}
	if s.Removed(root, "bin", out); !s.WasThere(root, "bin") {
		t.Error("what was removed after a directory was moved out of it is not remembered")
	}
	s.Removed(root, "elsewhere", sub)
	if s.Removed(root, "target", out); s.WasThere(root, "target") {
		t.Error("what is gone with all that was in it is remembered")
	}
	for i := range uint64(maxFreed + 1) {
		s.Removed(root, strconv.Itoa(int(i)), ID{Ino: 10 + i})
	}
	if !s.WasThere(root, "never") || s.places.count > maxFreed {
		t.Error("what was forgotten counts as free")
	}
}

// TestGivenGuardHoldsBelow: what a rule guards that is not built in is guarded with all below it, also in a directory
// that the session was let make, in one of its own. What a built-in rule guards there is the session's.
func TestGivenGuardHoldsBelow(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		builtIn bool
		want    Action
	}{{false, Guard}, {true, Free}} {
		j, err := NewJudge([]Rule{{Pattern: "*/memory", Action: Guard, Mkdir: true, BuiltIn: c.builtIn, Why: "w"}})
		if err != nil {
			t.Fatal(err)
		}
		memory := j.Root().Below("made").Below("memory")
		if v := memory.Rule("M.md", ByHost); v.Action != Guard {
			t.Errorf("built in %v: %v in a directory of the host's", c.builtIn, v.Action)
		}
		if v := memory.Rule("M.md", BySession); v.Action != c.want {
			t.Errorf("built in %v: %v in a directory of the session's, want %v", c.builtIn, v.Action, c.want)
		}
	}
}

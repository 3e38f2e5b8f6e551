package pathname

import (
	"path"
	"slices"
	"strings"
	"testing"
)

func TestBeside(t *testing.T) {
	match := func(name string) bool {
		return slices.ContainsFunc(Beside("~/.claude.json"), func(x string) bool {
			return pat(t, x).Match(testVars().Home + "/" + name)
		})
	}
	for _, name := range []string{".claude.json.tmp.2.65b785fcc989", ".claude.json.1f2e.tmp", ".claude.json.tmp",
		"..claude.json.Xq", ".claude.json.lock", ".claude.json.lock/owner"} {
		if !match(name) {
			t.Errorf("%s is not taken for a temporary neighbour", name)
		}
	}
	for _, name := range []string{".claude.json", ".claude.jsonx", ".claude", ".bashrc", ".claude.json.d/x",
		"x/.claude.json.tmp.1"} {
		if match(name) {
			t.Errorf("%s is taken for a temporary neighbour", name)
		}
	}
	if got := Beside("~/.claude/**"); got != nil {
		t.Errorf("a tree has neighbours: %q", got)
	}
}

func TestOriginals(t *testing.T) {
	for _, row := range []struct {
		name  string
		files string // whose temporary name it is
		dirs  string // the same of a directory
	}{
		{"a.json.tmp.1234", "a.json", ""},
		{"a.json.4f2e.tmp", "a a.json a.json.4f2e", ""}, // "a" has any word before .tmp
		{".a.json.Xy12", "a a.json", ""},
		{".a.json.swp", "a a.json", ""},
		{"a.json.lock", "a.json", "a.json"},
		{".a.lock", "a .a", ".a"},
		{"..a.Xy", ".a", ""},
		{"a.tmp.b.tmp.c", "a a.tmp.b", ""},
		{"a.json", "", ""}, {"a.json.tmp", "a a.json", ""}, {"x.tmp", "x", ""},
		{"a.json~", "", ""}, {"#a.json#", "", ""}, {".a", "", ""},
		{".tmp.1", "tmp", ""}, {".lock", "", ""}, {"...x", "", ""}, {"....x", "", ""}, {"a.json.bak", "", ""},
		{"id_rsa", "", ""}, {".bashrc", "", ""}, {"a.json.tmpx.1", "", ""}, {"a.jsontmp.1", "", ""},
		{"*.tmp.1", "", ""}, {`\x41.tmp.1`, `\x41`, ""}, // no letter of a name is one of a pattern
	} {
		for dir, want := range map[bool]string{false: row.files, true: row.dirs} {
			var got []string
			for _, f := range Originals("/d/"+row.name, dir) {
				if path.Dir(f) != "/d" {
					t.Errorf("%s: %s is elsewhere", row.name, f)
				}
				got = append(got, path.Base(f))
			}
			slices.Sort(got)
			words := strings.Fields(want)
			slices.Sort(words)
			if !slices.Equal(got, words) {
				t.Errorf("%s (directory %v): %q, want %q", row.name, dir, got, words)
			}
		}
	}
	if got := Originals("/d/a.lock/owner", false); got != nil {
		t.Errorf("what lies in a lock is that of %q", got)
	}
}

// FuzzOriginals: the files that are found are those whose patterns have the name, they lie in its directory, and none
// is the name itself.
func FuzzOriginals(f *testing.F) {
	for _, s := range []string{"a.tmp.1", "..a..tmp", ".\\x.lock", "*.*.tmp", "....", "a.lock.lock", "\xff.tmp.\n"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, name string) {
		p := "/d/" + name
		if clean, err := Clean(p); err != nil || clean != p || strings.Contains(name, "/") || len(name) > 64 {
			return
		}
		found := Originals(p, false)
		for i := range len(name) {
			for j := i; j <= len(name); j++ {
				x := name[i:j]
				if x == "" || x == "." || x == ".." || i > 1 {
					continue
				}
				has := slices.ContainsFunc(Beside("/d/"+Escape(x)), func(text string) bool {
					pattern, err := ParsePattern(text, Vars{})
					return err == nil && pattern.Match(p)
				})
				if has != slices.Contains(found, "/d/"+x) {
					t.Errorf("%q of %q: has it %v, found %q", name, x, has, found)
				}
			}
		}
		for _, x := range found {
			if path.Dir(x) != "/d" || x == p || len(x) >= len(p) {
				t.Errorf("%q is a temporary name of %q", p, x)
			}
		}
	})
}

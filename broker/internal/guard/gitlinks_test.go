package guard

import (
	"encoding/binary"
	"slices"
	"strings"
	"testing"
)

// entryOf is one of an index of version 2, with a length of its name as its flags say it.
func entryOf(mode uint32, name string, length int) []byte {
	b := make([]byte, statSize+20)
	binary.BigEndian.PutUint32(b[modeAt:], mode)
	b = binary.BigEndian.AppendUint16(b, uint16(length))
	b = append(b, name...)
	return append(b, make([]byte, 8-len(b)%8)...)
}

func indexOf(count int, body ...[]byte) []byte {
	b := binary.BigEndian.AppendUint32([]byte("DIRC\x00\x00\x00\x02"), uint32(count))
	return append(append(b, slices.Concat(body...)...), make([]byte, 20)...)
}

func extensionOf(name string, data []byte) []byte {
	return append(binary.BigEndian.AppendUint32([]byte(name), uint32(len(data))), data...)
}

// numbers are big-endian words.
func numbers(list ...uint32) (b []byte) {
	for _, n := range list {
		b = binary.BigEndian.AppendUint32(b, n)
	}
	return b
}

// TestNewLinks reads indexes as git does: what it could read otherwise is refused, not passed.
func TestNewLinks(t *testing.T) {
	const file, link, folder = 0o100644, 0o160000, 0o040000
	f, l := entryOf(file, "f", 1), entryOf(link, "sub", 3)
	second := uint32(12 + len(f))
	after := second + uint32(len(l))
	hash := make([]byte, 20)
	for _, c := range []struct {
		what      string
		old, next []byte
		want      string // of the places, or what is refused
		no        bool
	}{
		{what: "no index", next: []byte("ref: x\n"), no: true},
		{what: "files", next: indexOf(1, f)},
		{what: "a repository", next: indexOf(2, f, l), want: "sub"},
		{what: "one that was there", old: indexOf(1, l), next: indexOf(2, f, l)},
		{what: "one of a conflict", next: indexOf(1, entryOf(link, "sub", 3|2<<12)), want: "sub"},
		{what: "a place outside", next: indexOf(1, entryOf(link, "../x", 4)), no: true},
		{what: "a place at the root", next: indexOf(1, entryOf(link, "/x", 2)), no: true},
		{what: "no name", next: indexOf(1, entryOf(link, "", 0)), no: true},
		{what: "a length that hides the next", next: indexOf(2, entryOf(file, "f", 60), l), no: true},
		{what: "a length that is left out", next: indexOf(2, entryOf(link, "sub", 0xfff), f), want: "sub"},
		{what: "a length that is left out of a file", next: indexOf(2, entryOf(file, "f", 0xfff), l), want: "sub"},
		{what: "an entry of another file", old: indexOf(1, entryOf(link, "", 0), extensionOf("link", hash)),
			next: indexOf(1, entryOf(link, "", 0), extensionOf("link", hash)), no: true},
		{what: "cut off", next: indexOf(3, f, l), no: true},
		{what: "another file has more", next: indexOf(1, f, extensionOf("link", hash)), no: true},
		{what: "as before", old: indexOf(1, f, extensionOf("link", hash)), next: indexOf(1, f, extensionOf("link", hash))},
		{what: "a folded directory", next: indexOf(1, entryOf(folder, "d/", 2)), no: true},
		{what: "threads", next: indexOf(2, f, l, extensionOf("IEOT", numbers(1, 12, 1, second, 1))), want: "sub"},
		{what: "threads elsewhere", next: indexOf(1, f, extensionOf("IEOT", numbers(1, second+20, 1))), no: true},
		{what: "threads that leave out", next: indexOf(2, f, l, extensionOf("IEOT", numbers(1, 12, 1))), no: true},
		{what: "the end", next: indexOf(2, f, l, extensionOf("EOIE", append(numbers(after), hash...))), want: "sub"},
		{what: "another end", next: indexOf(2, f, l, extensionOf("EOIE", append(numbers(second), hash...))), no: true},
	} {
		got, err := NewLinks(c.old, c.next, 20)
		if strings.Join(got, " ") != c.want || (err != nil) != c.no {
			t.Errorf("%s: %q, %v", c.what, got, err)
		}
	}
}

// TestNewLinksInOneLength: an index is read in the length of ids that the repository has. This one names another place
// in the other length.
func TestNewLinksInOneLength(t *testing.T) {
	name := strings.Repeat("a", 10) + "\x80\x10" + strings.Repeat("b", 16)
	index := indexOf(1, entryOf(0o160000, name, 0xfff), extensionOf("ZZZZ", []byte("abcd")))
	for size, want := range map[int]string{20: name, 32: strings.Repeat("b", 16)} {
		if got, err := NewLinks(nil, index, size); strings.Join(got, " ") != want || err != nil {
			t.Errorf("%d: %q, %v", size, got, err)
		}
	}
}

// TestIDSize: what git could read in either length has none.
func TestIDSize(t *testing.T) {
	const one, two = "[core]\n\trepositoryformatversion = 1\n", "[extensions]\n\tobjectFormat = sha256\n"
	const first = "[extensions]\n\tobjectformat = sha1\n"
	for _, c := range []struct {
		what    string
		configs []string
		want    int
	}{
		{"none", nil, 20}, {"nothing said", []string{"[core]\n\tbare = true\n"}, 20}, {"the first", []string{first}, 20},
		{"the second", []string{one + two}, 32}, {"the same twice", []string{one + two, two + one}, 32},
		{"format 0, of which git takes none", []string{"[core]\n\trepositoryformatversion = 0\n" + two}, 0},
		{"no format, by which git overlooks it", []string{two}, 0},
		{"both", []string{one + first + two}, 0}, {"both in two files", []string{one + two, first}, 0},
		{"another", []string{one + "[extensions]\n\tobjectformat = sha512\n"}, 0},
		{"no value", []string{one + "[extensions]\n\tobjectformat\n"}, 0},
		{"of a subsection", []string{one + "[extensions \"x\"]\n\tobjectformat = sha256\n"}, 20},
		{"not understood", []string{"[core\n"}, 0},
	} {
		configs := [][]byte{nil}
		for _, text := range c.configs {
			configs = append(configs, []byte(text))
		}
		if got, err := IDSize(configs...); got != c.want || (err != nil) != (c.want == 0) {
			t.Errorf("%s: %d, %v", c.what, got, err)
		}
	}
}

// TestConfigKeepsTheFormat: the length of ids is chosen once, before there is an index.
func TestConfigKeepsTheFormat(t *testing.T) {
	const one = "[core]\n\trepositoryformatversion = 1\n"
	const two = one + "[extensions]\n\tobjectformat = sha256\n"
	indexed := false
	for _, c := range []struct {
		what    string
		indexed bool
		texts   []string // the last is refused, unless ok
		ok      bool
	}{
		{"as git init does", false, []string{"", one, two}, true},
		{"beside an index", true, []string{"", one, two}, false},
		{"what was there", false, []string{one, two}, false},
		{"what was there, without an index", false, []string{two, "[extensions]\n\tobjectformat = sha256\n"}, true},
		{"no format", true, []string{two, "[extensions]\n\tobjectformat = sha256\n"}, false},
		{"format 0", true, []string{two, strings.Replace(two, "1", "0", 1)}, false},
		{"another setting", true, []string{two, two + "[user]\n\tname = a\n"}, true},
	} {
		indexed = c.indexed
		configs, old := Configs{Indexed: func(string) bool { return indexed }}, []byte(nil)
		for i, text := range c.texts {
			if text == "" {
				continue // there is none
			}
			if old == nil && i == 0 {
				old = []byte(text)
				continue
			}
			err := configs.Check(".git/config", old, []byte(text))
			if last := i == len(c.texts)-1; (err == nil) != (c.ok || !last) {
				t.Errorf("%s: %q: %v", c.what, text, err)
			}
			old = []byte(text)
		}
	}
}

// TestIndexIsOne: what gets an index's name and is none would be read by that name, whatever it is. One that the host
// has names nothing, so that any may be put in its place.
func TestIndexIsOne(t *testing.T) {
	index := indexOf(0)
	for _, text := range [...]string{"", "TOKEN=secret\n", "DIR", "dirc" + string(index[4:])} {
		if _, err := NewLinks(index, []byte(text), 20); err == nil {
			t.Errorf("%q is put in place", text)
		}
		if found, err := IndexLinks([]byte(text), 20); err != nil || len(found.Places()) > 0 {
			t.Errorf("%q on the host names %v, %v", text, found, err)
		}
		if _, err := NewLinks([]byte(text), index, 20); err != nil {
			t.Errorf("instead of %q: %v", text, err)
		}
	}
}

// TestExpect: what a session makes where a repository is looked for is as if it had been there, also in a directory
// whose name tools use for what they make anew.
func TestExpect(t *testing.T) {
	top, id := ID{Ino: 1}, ID{Ino: 2}
	judge, err := NewJudge(BuiltIn())
	if err != nil {
		t.Fatal(err)
	}
	for _, expected := range []bool{false, true} {
		var s Session
		if expected {
			s.Expect(top, "build")
		}
		s.Mkdir(judge.Root(), Verdict{}, top, "build", id)
		if s.Own(id) == expected {
			t.Errorf("expected %v: own %v", expected, s.Own(id))
		}
	}
}

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
		got, err := NewLinks(c.old, c.next)
		if strings.Join(got, " ") != c.want || (err != nil) != c.no {
			t.Errorf("%s: %q, %v", c.what, got, err)
		}
	}
}

// TestExpect: what a session makes where a repository is looked for is as if it had been there, also in a directory
// whose name tools use for what they make anew.
// TestIndexIsOne: what gets an index's name and is none would be read by that name, whatever it is. One that the host
// has names nothing, so that any may be put in its place.
func TestIndexIsOne(t *testing.T) {
	index := indexOf(0)
	for _, text := range [...]string{"", "TOKEN=secret\n", "DIR", "dirc" + string(index[4:])} {
		if _, err := NewLinks(index, []byte(text)); err == nil {
			t.Errorf("%q is put in place", text)
		}
		if found, err := IndexLinks([]byte(text)); err != nil || len(found.Places()) > 0 {
			t.Errorf("%q on the host names %v, %v", text, found, err)
		}
		if _, err := NewLinks([]byte(text), index); err != nil {
			t.Errorf("instead of %q: %v", text, err)
		}
	}
}

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

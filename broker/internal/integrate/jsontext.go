package integrate

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// Member is one member of a JSON document that was set, as much as it takes to take it back.
type Member struct {
	Path []string        `json:"path"`
	Old  json.RawMessage `json:"old,omitempty"` // nil: there was none
	New  json.RawMessage `json:"new"`
	Made int             `json:"made"` // how many objects on the way to it were made for it
}

// span is one member of an object, by offsets into its text: its name's quote, and its value.
type span struct {
	name             string
	key, value, next int // next is what follows the value
}

var errNoObject = errors.New("it is not a JSON object")

// object reads the members of the object that begins at from, and where its closing brace is. The text is valid JSON.
// It is an error where programs differ in which members there are: one has a name twice, or a name is no text in Go,
// which then has U+FFFD in it.
func object(text []byte, from int) (members []span, closing int, err error) {
	if from >= len(text) || text[from] != '{' {
		return nil, 0, errNoObject
	}
	i := skipSpace(text, from+1)
	for text[i] != '}' {
		s := span{key: i}
		end := skipValue(text, i)
		if err := json.Unmarshal(text[i:end], &s.name); err != nil {
			return nil, 0, err
		}
		if strings.ContainsRune(s.name, utf8.RuneError) || find(members, s.name) != nil {
			return nil, 0, fmt.Errorf("its member %q is there twice, or its name is not one for every program", s.name)
		}
		s.value = skipSpace(text, skipSpace(text, end)+1) // behind the colon
		s.next = skipValue(text, s.value)
		members = append(members, s)
		if i = skipSpace(text, s.next); text[i] == ',' {
			i = skipSpace(text, i+1)
		}
	}
	return members, i, nil
}

func skipSpace(text []byte, i int) int {
	for i < len(text) && strings.IndexByte(" \t\r\n", text[i]) >= 0 {
		i++
	}
	return i
}

// skipValue returns the end of the value at i of valid JSON.
func skipValue(text []byte, i int) int {
	var raw json.RawMessage
	d := json.NewDecoder(bytes.NewReader(text[i:]))
	if d.Decode(&raw) != nil {
		return len(text)
	}
	return i + int(d.InputOffset())
}

// find returns the member with a name.
func find(members []span, name string) *span {
	if i := slices.IndexFunc(members, func(s span) bool { return s.name == name }); i >= 0 {
		return &members[i]
	}
	return nil
}

// top returns where the document's object begins. No text is an empty object.
func top(text []byte) ([]byte, int, error) {
	if len(bytes.TrimSpace(text)) == 0 {
		return []byte("{\n}\n"), 0, nil
	}
	if !json.Valid(text) {
		var v any
		return nil, 0, fmt.Errorf("it is not valid JSON: %w", json.Unmarshal(text, &v))
	}
	at := skipSpace(text, 0)
	_, _, err := object(text, at)
	return text, at, err
}

// set gives a member of a document a value and leaves all other bytes as they are. Objects that lack on the way are
// made.
func set(text []byte, path []string, value any) ([]byte, Member, error) {
	raw, err := json.Marshal(value)
	if err != nil {
		return nil, Member{}, err
	}
	m := Member{Path: path, New: raw}
	text, at, err := top(text)
	if err != nil {
		return nil, m, err
	}
	for depth := range path {
		members, closing, err := object(text, at)
		if err != nil {
			return nil, m, fmt.Errorf("%q in it: %w", strings.Join(path[:depth], "."), err)
		}
		s := find(members, path[depth])
		last := depth == len(path)-1
		switch {
		case s == nil:
			m.Made = len(path) - 1 - depth
			return enclosing{at, closing, members, depth}.insert(text, path[depth:], value), m, nil
		case last:
			m.Old = bytes.Clone(text[s.value:s.next])
			return splice(text, s.value, s.next, indented(value, depth+1)), m, nil
		}
		at = s.value
	}
	return nil, m, errNoObject
}

// enclosing is an object of a document: where its braces are, what is between them, and how many objects it is in.
type enclosing struct {
	at, closing int
	members     []span
	depth       int
}

// insert adds a member, and the objects that lead to it, behind the last of an object's.
func (o enclosing) insert(text []byte, path []string, value any) []byte {
	for i := len(path) - 1; i > 0; i-- {
		value = map[string]any{path[i]: value}
	}
	name, _ := json.Marshal(path[0])
	entry := string(name) + ": " + string(indented(value, o.depth+1))
	if n := len(o.members); n > 0 {
		before := o.at + 1
		if n > 1 {
			before = bytes.IndexByte(text[o.members[n-2].next:], ',') + o.members[n-2].next + 1
		}
		last := o.members[n-1]
		return splice(text, last.next, last.next, []byte(","+string(text[before:last.key])+entry))
	}
	pad := strings.Repeat("  ", o.depth)
	return splice(text, o.at+1, o.closing, []byte("\n"+pad+"  "+entry+"\n"+pad))
}

func indented(value any, depth int) []byte {
	b, _ := json.MarshalIndent(value, strings.Repeat("  ", depth), "  ") // what is set is plain data
	return b
}

func splice(text []byte, from, to int, with []byte) []byte {
	return bytes.Join([][]byte{text[:from], with, text[to:]}, nil)
}

// unsetAll takes members back, the last that was set first; taken says whether one was. Those of one object belong
// together: where one was changed since the others stay as well, but for a server's own command line, which is put back
// as it is now.
func unsetAll(text []byte, list []Member) (_ []byte, taken bool, err error) {
	for end := len(list); end > 0; {
		from := end - 1
		for from > 0 && slices.Equal(list[from-1].parent(), list[from].parent()) {
			from--
		}
		group := list[from:end]
		end = from
		served, ok := ownLine(text, group)
		switch {
		case !slices.ContainsFunc(group, func(m Member) bool { return !m.stands(text) }):
			for i := len(group) - 1; i >= 0; i-- {
				one := false
				if text, one, err = unset(text, group[i]); err != nil {
					return text, taken, err
				}
				taken = taken || one
			}
		case ok:
			if text, err = putBack(text, group, served); err != nil {
				return text, taken, err
			}
			taken = true
		}
	}
	return text, taken, nil
}

func (m *Member) parent() []string { return m.Path[:len(m.Path)-1] }

// value is what a document has there; nil: nothing.
func (m *Member) value(text []byte) []byte {
	text, at, err := top(text)
	for _, name := range m.Path {
		if err != nil {
			return nil
		}
		var members []span
		members, _, err = object(text, at)
		s := find(members, name)
		if err != nil || s == nil {
			return nil
		}
		at = s.value
	}
	return text[at:skipValue(text, at)]
}

// stands says whether the member is as it was set, or not there any more.
func (m *Member) stands(text []byte) bool {
	now := m.value(text)
	return now == nil || same(now, m.New)
}

// ownLine is the command line of a server as it is now behind what was put before it, command and arguments in one or
// two members.
func ownLine(text []byte, group []Member) ([]string, bool) {
	var was, now []string
	if path := group[0].Path; path[len(path)-1] != "command" {
		return nil, false
	}
	for i := range group {
		was, now = append(was, texts(group[i].New)...), append(now, texts(group[i].value(text))...)
	}
	if len(was) == 0 || len(now) == 0 || was[0] != now[0] {
		return nil, false
	}
	name, _, _ := serverOf(was[1:])
	called, line, _ := serverOf(now[1:])
	return line, line != nil && called == name
}

// texts are those of a list, or one; nil of anything else.
func texts(raw []byte) (out []string) {
	var one string
	if json.Unmarshal(raw, &one) == nil {
		return []string{one}
	}
	_ = json.Unmarshal(raw, &out)
	return out
}

// putBack sets the members to a command line, as the old ones were written where they are the same.
func putBack(text []byte, group []Member, line []string) (_ []byte, err error) {
	for i := range group {
		m := group[i]
		m.New = m.value(text)
		var value any = line
		if len(group) > 1 {
			if value = line[1:]; i == 0 {
				value = line[0]
			}
		}
		raw, err := json.Marshal(value)
		if err != nil {
			return text, err
		}
		if m.Old != nil && !same(m.Old, raw) || m.Old == nil && len(line) > 1 {
			m.Old = indented(value, len(m.Path))
		}
		if text, _, err = unset(text, m); err != nil {
			return text, err
		}
	}
	return text, nil
}

// unset takes a member back: its old value, or none. What was changed since is left; taken says whether it was not.
func unset(text []byte, m Member) (_ []byte, taken bool, err error) {
	text, at, err := top(text)
	if err != nil {
		return nil, false, err
	}
	for depth := len(m.Path) - 1; depth >= len(m.Path)-1-m.Made; depth-- {
		parent := at
		for _, name := range m.Path[:depth] {
			members, _, err := object(text, parent)
			s := find(members, name)
			if err != nil || s == nil {
				return text, false, nil
			}
			parent = s.value
		}
		members, _, err := object(text, parent)
		s := find(members, m.Path[depth])
		if err != nil || s == nil {
			return text, false, nil
		}
		leaf := depth == len(m.Path)-1
		switch value := text[s.value:s.next]; {
		case leaf && !same(value, m.New), !leaf && !same(value, json.RawMessage("{}")):
			return text, !leaf, nil
		case leaf && m.Old != nil:
			return splice(text, s.value, s.next, m.Old), true, nil
		}
		text = remove(text, parent, members, s)
	}
	return text, true, nil
}

// remove takes a member out with the comma that separated it.
func remove(text []byte, parent int, members []span, s *span) []byte {
	for i := range members {
		if members[i].key != s.key {
			continue
		}
		switch {
		case i > 0:
			return splice(text, members[i-1].next, s.next, nil)
		case len(members) > 1:
			return splice(text, s.key, members[1].key, nil)
		}
	}
	_, closing, _ := object(text, parent)
	return splice(text, parent+1, closing, nil)
}

// same says whether two texts are the same value.
func same(a, b []byte) bool {
	var x, y bytes.Buffer
	return json.Compact(&x, a) == nil && json.Compact(&y, b) == nil && bytes.Equal(x.Bytes(), y.Bytes())
}

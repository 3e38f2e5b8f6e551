package control

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"sbx.example/sbx/broker/internal/prompt"
)

const id = "0123456789abcdef0123456789abcdef"

func TestParseCommand(t *testing.T) {
	for _, c := range []struct{ line, code, message string }{
		{`{"type":"cmd.approve","id":"` + id + `"}`, "", ""},
		{` {"id":"` + id + `" , "type":"cmd.approve","scope":"tree","life":"forever","persist":"user"} `, "", ""},
		{`{"type":"cmd.approve","id":"` + id + `","persist":true}`, "", ""},
		{`{"type":"cmd.approve","id":"` + id + `","persist":false}`, "", ""},
		{`{"type":"cmd.approve","id":"` + id + `","persist":1}`, CodeField, "want a string"},
		{`{"type":"cmd.deny","id":"` + id + `"}`, "", ""},
		{`{"type":"hello","version":1,"sid":"k3f9"}`, "", ""},
		{`{"type":"cmd.exec","argv":["a","\udcff"],"cwd":"/x","env":[],"tty":true}`, "", ""},
		{`{"type":"cmd.stats"}`, "", ""},
		{``, CodeSyntax, "not one JSON object"},
		{`{`, CodeSyntax, "not one JSON object"},
		{`[]`, CodeSyntax, "not a JSON object"},
		{`1`, CodeSyntax, "not a JSON object"},
		{`"x"`, CodeSyntax, "not a JSON object"},
		{`null`, CodeSyntax, "not a JSON object"},
		{`{}`, CodeType, "type is missing"},
		{`{"type":1}`, CodeField, "want a string"},
		{`{"type":null}`, CodeField, "want a string"},
		{`{"type":"nope"}`, CodeType, "unknown type nope"},
		{`{"type":"event.audit","id":"` + id + `"}`, CodeType, "unknown type"},
		{`{"type":"CMD.STATS"}`, CodeType, "unknown type"},
		{`{"Type":"cmd.stats"}`, CodeType, "type is missing"},
		{`{"type":"cmd.approve"}`, CodeField, "needs id"},
		{`{"type":"cmd.approve","id":1}`, CodeField, "want a string"},
		{`{"type":"cmd.approve","id":1e99}`, CodeField, "want a string"},
		{`{"type":"cmd.approve","id":"1"}`, CodeField, "32 hexadecimal"},
		{`{"type":"cmd.approve","id":"` + strings.ToUpper(id) + `"}`, CodeField, "32 hexadecimal"},
		{`{"type":"cmd.approve","id":"` + id + `","path":"/"}`, CodeField, "no member path"},
		{`{"type":"cmd.approve","id":"` + id + `","ID":"` + id + `"}`, CodeField, "no member ID"},
		{`{"type":"cmd.approve","id":"` + id + `","id":"` + id + `"}`, CodeSyntax, "given twice"},
		{`{"type":"cmd.approve","id":"` + id + `"}{"type":"cmd.stats"}`, CodeSyntax, "not one JSON object"},
		{`{"type":"cmd.approve","id":"` + id + `","scope":["once"]}`, CodeField, "want a string"},
		{`{"type":"cmd.approve","id":"` + id + `","scope":"` + strings.Repeat("a", 200) + `"}`, CodeField, "too long"},
		{`{"type":"cmd.approve","id":"` + id + `","scope":"\u202e"}`, CodeField, "printable ASCII"},
		{"{\"type\":\"cmd.stats\"\x00}", CodeSyntax, "not one JSON object"},
		{"{\"type\":\"cmd.stats\"}\x00", CodeSyntax, "not one JSON object"},
		{"\xff\xfe{", CodeSyntax, "not UTF-8"},
		{`{"type":"cmd.exec","argv":[]}`, CodeField, "want a string at least"},
		{`{"type":"cmd.exec","argv":["a\u0000b"]}`, CodeField, "NUL"},
		{`{"type":"cmd.exec","argv":["\ud800"]}`, CodeField, "UTF-8"},
		{`{"type":"cmd.exec","argv":[["a"]]}`, CodeField, "want a string"},
		{`{"type":"cmd.exec","argv":{"0":"a"}}`, CodeField, "want a list"},
		{`{"type":"cmd.exec","argv":["a"],"tty":1}`, CodeField, "true or false"},
		{`{"type":"cmd.exec","argv":["a"],"nolinks":""}`, CodeField, "true or false"},
		{`{"type":"cmd.exec","argv":["a"],"cwd":"/x","nolinks":true}`, "", ""},
		{`{"type":"cmd.file","op":"read","path":"\udcff","fds":3,"offset":5000000000,"limit":16777216}`, "", ""},
		{`{"type":"cmd.file","op":"find","path":"","pattern":"*.go","depth":3,"root":"/x","fds":3,"tag":1}`, "", ""},
		{`{"type":"cmd.file","op":"read","path":"x"}`, CodeField, "needs fds"},
		{`{"type":"cmd.file","op":"read","path":"","fds":3}`, CodeField, "wants a path"},
		{`{"type":"cmd.file","op":"run","path":"x","fds":3}`, CodeField, "no operation is called run"},
		{`{"type":"cmd.file","op":"read","path":"x","fds":3,"limit":16777217}`, CodeField, "at most 16777216"},
		{`{"type":"cmd.file","op":"read","path":"x","fds":3,"offset":-1}`, CodeField, "at most 18 digits"},
		{`{"type":"cmd.file","op":"read","path":"x","fds":3,"root":"/x/../y"}`, CodeField, "not a clean absolute path"},
		{`{"type":"cmd.file","op":"list","path":"x","fds":3,"parents":true}`, CodeField, "parents is for write"},
		{`{"type":"cmd.file","op":"find","path":"x","fds":3}`, CodeField, "find wants a pattern"},
		{`{"type":"cmd.file","op":"read","path":"x","argv":["x"],"fds":3}`, CodeField, "no member argv"},
		{`{"type":"cmd.exec","argv":["x"],"path":"x"}`, CodeField, "no member path"},
		{`{"type":"hello","version":-1}`, CodeField, "small number"},
		{`{"type":"hello","version":1.0}`, CodeField, "small number"},
		{`{"type":"hello","version":9999999999}`, CodeField, "small number"},
		{`{"a":1,"b":1,"c":1,"d":1,"e":1,"f":1,"g":1,"h":1,"i":1,"j":1,"k":1,"l":1,"m":1,"n":1,"o":1,"p":1,"q":1}`,
			CodeSyntax, "too many members"},
		{strings.Repeat(`[`, 20000), CodeSyntax, "not one JSON object"},
	} {
		_, e := parseCommand([]byte(c.line))
		switch {
		case c.code == "" && e != nil:
			t.Errorf("%.80s: %v", c.line, e)
		case c.code != "" && (e == nil || e.Code != c.code || !strings.Contains(e.Message, c.message)):
			t.Errorf("%.80q: %+v, want %s %q", c.line, e, c.code, c.message)
		}
	}
}

// Each member of the table can be set, so no line reaches the panic.
func TestShapesAreWired(t *testing.T) {
	for _, s := range shapes() {
		for _, m := range strings.Fields(s.must + " " + s.may) {
			_ = new(Command).set(member{m, json.RawMessage(`"x"`)})
		}
		if e := (&conn{s: &Server{}, first: true, wake: make(chan struct{}, 1)}).obey(&Command{Type: s.typ, Version: Version,
			Scope: "user"}); s.typ != "hello" && s.typ != "cmd.pending" {
			if e == nil || e.Code != CodeNotHere {
				t.Errorf("%s without a handler: %+v", s.typ, e)
			}
		} else if e != nil {
			t.Errorf("%s: %+v", s.typ, e)
		}
	}
}

func FuzzParseCommand(f *testing.F) {
	f.Add([]byte(`{"type":"cmd.approve","id":"` + id + `","scope":"once","life":"until","until":"2030-01-01T00:00:00Z"}`))
	f.Add([]byte(`{"type":"cmd.exec","argv":["a","\udcff\u00e4"],"cwd":"/x","env":["A=b"],"tty":true}`))
	f.Add([]byte(`{"type":"hello","version":1,"sid":"x"}`))
	f.Add([]byte("{\"type\":\"cmd.stats\"}\x00"))
	f.Fuzz(func(t *testing.T, line []byte) {
		c, e := parseCommand(line)
		if e != nil {
			if out := errorLine(e); !printable(out) || len(out) > MaxLine {
				t.Fatalf("%q", out)
			}
			return
		}
		if !utf8.Valid(line) || !json.Valid(line) {
			t.Fatalf("%q was read as %+v", line, c)
		}
		if a, e := c.Answer(time.Unix(0, 0)); e == nil && a.Allow && c.Type != "cmd.approve" {
			t.Fatalf("%q allows", line)
		}
	})
}

func printable(b []byte) bool {
	if len(b) == 0 || b[len(b)-1] != '\n' {
		return false
	}
	for _, c := range b[:len(b)-1] {
		if c < 0x20 || c > 0x7e {
			return false
		}
	}
	return true
}

// What is sent is what is read, bytes and all.
func FuzzRequestLine(f *testing.F) {
	f.Add("/a/\xff\xfe\u202e\x1b", "/bin/x", "", 7)
	f.Add("", "", "host", 443)
	f.Fuzz(func(t *testing.T, path, exe, host string, n int) {
		q := prompt.Question{ID: id, SID: "s", Time: time.Unix(5, 7).UTC(), PID: n, Exe: exe, Cwd: path, Op: "open",
			Path: path, Target: exe, Host: host, Why: path, Merged: n}
		if host != "" {
			q.Port = n
		} else {
			q.Flags = n
		}
		line := requestLine(q)
		if !printable(line) || len(line) > MaxLine {
			t.Fatalf("%d bytes: %q", len(line), line)
		}
		var m Message
		if err := json.Unmarshal(line, &m); err != nil {
			t.Fatal(err)
		}
		if got := m.Question(); len(path)+len(exe)+len(host) < 3000 && !reflect.DeepEqual(got, q) {
			t.Fatalf("\n got %+v\nwant %+v", got, q)
		}
	})
}

func TestLongestPathsFitALine(t *testing.T) {
	worst := strings.Repeat("\xff", 4095)
	q := prompt.Question{ID: id, Op: worst, Path: worst, Exe: worst, Cwd: worst, Target: worst, Why: worst}
	line := requestLine(q)
	var m Message
	if err := json.Unmarshal(line, &m); err != nil || len(line) > MaxLine || string(m.Path) != worst {
		t.Errorf("%d bytes, path kept %v, %v", len(line), string(m.Path) == worst, err)
	}
	q.Path = strings.Repeat("\xff", 1<<20)
	if line := requestLine(q); len(line) > MaxLine {
		t.Errorf("%d bytes", len(line))
	}
	if line := helloLine(Info{SID: "s", Cwd: "\xff", Argv: nil}); !printable(line) {
		t.Errorf("%q", line)
	}
}

func TestPersistIsAStoreOrABoolean(t *testing.T) {
	for value, want := range map[string]string{`true`: "user", `false`: "", `"project"`: "project"} {
		c, err := parseCommand([]byte(`{"type":"cmd.approve","id":"` + id + `","persist":` + value + `}`))
		if err != nil {
			t.Fatal(err)
		}
		a, err := c.Answer(time.Now())
		if err != nil || a.Persist != want {
			t.Errorf("persist %s: %q, want %q (%v)", value, a.Persist, want, err)
		}
	}
}

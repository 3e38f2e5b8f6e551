package integrate

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestSetLeavesAllOtherBytes(t *testing.T) {
	for _, c := range []struct{ name, text, want string }{
		{"nothing", "", "{\n  \"sandbox\": {\n    \"enabled\": true\n  }\n}\n"},
		{"empty", "{}", "{\n  \"sandbox\": {\n    \"enabled\": true\n  }\n}"},
		{"beside", "{\n    \"a\":  1\n}\n",
			"{\n    \"a\":  1,\n    \"sandbox\": {\n    \"enabled\": true\n  }\n}\n"},
		{"in one line", `{"a":1,  "b":[1,{"}":"\"{"}]}`,
			`{"a":1,  "b":[1,{"}":"\"{"}],  "sandbox": {` + "\n    \"enabled\": true\n  }}"},
		{"in an object", `{"sandbox" : {"x":null} , "b":2}`, `{"sandbox" : {"x":null,"enabled": true} , "b":2}`},
		{"another value", `{"sandbox":{"enabled" :false}}`, `{"sandbox":{"enabled" :true}}`},
	} {
		got, m, err := set([]byte(c.text), []string{"sandbox", "enabled"}, true)
		if err != nil || string(got) != c.want || !json.Valid(got) {
			t.Errorf("%s: %q, %v, want %q", c.name, got, err, c.want)
		}
		back, taken, err := unset(got, m)
		if err != nil || !taken || !same2(back, c.text) {
			t.Errorf("%s: taken back: %q, %t, %v, want %q", c.name, back, taken, err, c.text)
		}
	}
}

// same2 compares values; a text of spaces is an empty object.
func same2(a []byte, b string) bool {
	if strings.TrimSpace(b) == "" {
		b = "{}"
	}
	return same(a, []byte(b))
}

func TestSetRefuses(t *testing.T) {
	for _, text := range []string{"{", "[]", `"x"`, "{} {}", "// a comment\n{}", `{"sandbox":3}`, "nul",
		`{"sandbox":{"enabled":1,"enabled":2}}`, `{"sandbox":{},"sandbox":{}}`, `{"\ud800":1}`} {
		if got, _, err := set([]byte(text), []string{"sandbox", "enabled"}, true); err == nil {
			t.Errorf("%q became %q", text, got)
		}
	}
}

func TestUnsetKeepsWhatWasChangedSince(t *testing.T) {
	_, m, err := set([]byte("{}"), []string{"sandbox", "enabled"}, true)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		text, want string
		taken      bool
	}{
		{`{"sandbox":{"enabled":false}}`, `{"sandbox":{"enabled":false}}`, false},
		{`{"sandbox":{"enabled":true,"x":1}}`, `{"sandbox":{"x":1}}`, true},
		{`{"sandbox":{"x":1, "enabled":true},"y":2}`, `{"sandbox":{"x":1},"y":2}`, true},
		{`{"y":2}`, `{"y":2}`, false},
		{`{"sandbox":7}`, `{"sandbox":7}`, false},
		{`{"y":2,"sandbox":{"enabled":true}}`, `{"y":2}`, true},
	} {
		got, taken, err := unset([]byte(c.text), m)
		if err != nil || taken != c.taken || string(got) != c.want {
			t.Errorf("%s: %s, %t, %v, want %s, %t", c.text, got, taken, err, c.want, c.taken)
		}
	}
}

// Whatever the document is, what was set is there afterwards, all else is as it was, and taking it back gives the
// value that was there.
func FuzzSet(f *testing.F) {
	for _, s := range []string{"{}", `{"a":{"b":1}}`, `{"a":[{}],"a":{}}`, "{\"\\u0061\":{\"b\" : 2 }\n}", "[1]", ""} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		got, m, err := set([]byte(s), []string{"a", "b"}, "v")
		if err != nil {
			return
		}
		var doc map[string]any // of equal names the last counts, as for the programs that read it
		if err := json.Unmarshal(got, &doc); err != nil {
			t.Fatalf("%q became %q: %v", s, got, err)
		}
		if a, _ := doc["a"].(map[string]any); a["b"] != "v" {
			t.Fatalf("%q became %q", s, got)
		}
		back, taken, err := unset(got, m)
		if err != nil || !taken || !same2(back, s) {
			t.Fatalf("%q, %q, back %q (%t, %v)", s, got, back, taken, err)
		}
	})
}

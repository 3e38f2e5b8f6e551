package seatbelt

import (
	"testing"

	"sbx.example/sbx/broker/internal/guard"
	"sbx.example/sbx/broker/internal/planner"
)

// TestNormalForms: a guarded name, a secret and a place that is only read are refused in each of Unicode's normal
// forms, in both letter cases, and with escapes in a pattern. The controls are names beside them.
func TestNormalForms(t *testing.T) {
	const composed, parts, hangul, jamo = "caf\u00e9", "cafe\u0301", "\ud55c\uae00", "\u1112\u1161\u11ab\u1100\u1173\u11af"
	for _, c := range []struct {
		pattern string
		names   []string
		others  []string
	}{
		{composed, []string{composed, parts, "CAF\u00c9", "CAFE\u0301", composed + "/x"}, []string{"cafe", "caf", "tea"}},
		{parts, []string{composed, parts}, []string{"cafe", "tea"}},
		{hangul, []string{hangul, jamo}, []string{"ab", "abcdef"}},
		{jamo, []string{hangul, jamo}, []string{"ab", "abcdef"}},
		{"\u212bx", []string{"\u212bx", "\u00c5x", "A\u030ax", "a\u030aX"}, []string{"Ax", "x"}},
		{"\u212aey", []string{"key", "KEY"}, []string{"hey"}},
		{"a?b", []string{"axb", "a\u00e9b", "ae\u0301b"}, []string{"ab", "axyb"}},
		{"a[\u00e9x]b", []string{"axb", "a\u00e9b", "ae\u0301b"}, []string{"ab", "axyb"}},
		{`a[\]x]b`, []string{"a]b", "axb"}, []string{"ab"}},
		{`pa\ss`, []string{"pass", "paSS", "pa\u00df"}, []string{"pasword", "pas", "passs"}},
		{`pas\s`, []string{"pass", "PASS", "pa\u00df"}, []string{"pas", "passs"}},
		{`\s\s\s`, []string{"sss"}, []string{"ss", "ssss"}},
		{`gro\ßx`, []string{"grossx", "gro\u00dfx"}, []string{"grosx"}},
	} {
		v := View{Places: []planner.Place{{Path: "/t", Show: planner.Changable, Tree: true}},
			Guards: []Guard{{Top: "/t", Rules: []guard.Rule{{Pattern: "**/" + c.pattern, Action: guard.Guard}}}}}
		p := parsed(t, v)
		for _, name := range c.names {
			if p.Allows("file-write-data", "/t/"+name) || p.Allows("file-write-create", "/t/d/"+name) {
				t.Errorf("%q: %q may be written", c.pattern, name)
			}
		}
		for _, name := range c.others {
			if !p.Allows("file-write-data", "/t/"+name) {
				t.Errorf("%q: %q is refused", c.pattern, name)
			}
		}
	}
	for _, x := range [][2]string{{composed, parts}, {parts, composed}, {hangul, jamo}, {jamo, hangul}} {
		p := parsed(t, View{Places: []planner.Place{{Path: "/" + x[0], Show: planner.Changable, Tree: true},
			{Path: "/" + x[1], Show: planner.Changable, Tree: true},
			{Path: "/" + x[0] + "/secret " + x[0], Tree: true},
			{Path: "/" + x[0] + "/read/" + x[0], Show: planner.Readable, Tree: true, NoExec: true}}})
		for _, top := range x {
			for _, name := range x {
				for op, at := range map[string]string{"file-read-data": "/secret " + name, "file-write-create": "/secret " + name +
					"/x", "file-write-data": "/read/" + name, "process-exec": "/read/" + name + "/x",
					"file-write-unlink": "/read"} {
					if p.Allows(op, "/"+top+at) {
						t.Errorf("%s of %q is allowed", op, "/"+top+at)
					}
				}
				for _, at := range []string{"/secret", "/x", "/secret x"} {
					if !p.Allows("file-write-data", "/"+top+at) {
						t.Errorf("%q is refused", "/"+top+at)
					}
				}
			}
		}
	}
}

func parsed(t *testing.T, v View) *Profile {
	t.Helper()
	text, err := Text(v)
	if err != nil {
		t.Fatal(err)
	}
	p, err := Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

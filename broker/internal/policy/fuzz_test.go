package policy

import (
	"strings"
	"testing"

	"sbx.example/sbx/broker/internal/policy/ownfile"
)

func FuzzConfig(f *testing.F) {
	for _, s := range []string{"[fs]\nhidden=[\"/a\", '''b''']\n", "a.\"b.c\"=1", "x={a=[1,{b=2}]}",
		"[[rule]]\npath='/x'\ndecision='deny'\n", "[profiles.x]\nextends='strict'"} {
		f.Add(s)
	}
	vars := testVars()
	f.Fuzz(func(t *testing.T, text string) {
		if len(text) > ownfile.Max {
			return
		}
		src := &source{scope: ScopeProject, path: "p", data: []byte(text)}
		l, err := parseConfig(src, vars)
		if err != nil {
			return
		}
		e, err := Merge(Layers{Project: l, Vars: vars}, nil)
		if err != nil {
			return
		}
		base, _ := Merge(Layers{Vars: vars}, nil)
		for _, c := range Diff(base, e) {
			if c.Widens {
				t.Fatalf("an untrusted project widens: %v\n%s", c, text)
			}
		}
		for _, s := range l.Settings {
			if s.Origin.Line < 1 || s.Origin.Line > strings.Count(text, "\n")+1 {
				t.Fatalf("%s has line %d", s.Key, s.Origin.Line)
			}
		}
	})
}

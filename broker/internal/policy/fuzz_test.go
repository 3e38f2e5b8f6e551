package policy

import (
	"strings"
	"testing"

	"sbx.example/sbx/broker/internal/policy/ownfile"
)

func FuzzConfig(f *testing.F) {
	for _, s := range []string{"[fs]\nhidden=[\"/a\", '''b''']\n", "a.\"b.c\"=1", "x={a=[1,{b=2}]}",
		"[[rule]]\npath='/x'\ndecision='deny'\n", "[profiles.x]\nextends='strict'", "[fs]\nwritable=['$PROJECT']\n",
		"[network]\nmode='auto'\n[env]\npass=['LANG']\n[fs]\ncaches='project'"} {
		f.Add(s)
	}
	vars := testVars()
	var users []*Layer
	for _, text := range []string{"", "sandbox.profile='strict'", "sandbox.profile='review'\nenv.clear=true\n" + review,
		"sandbox.profile='permissive'\nnetwork.hosts=['a.test']"} {
		l, err := ParseConfig([]byte(text), "u", ScopeUser, vars)
		if err != nil {
			f.Fatal(err)
		}
		users = append(users, l)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if len(text) > ownfile.Max {
			return
		}
		src := &source{scope: ScopeProject, path: "p", data: []byte(text)}
		l, err := parseConfig(src, vars)
		if err != nil {
			return
		}
		for _, user := range users {
			e, err1 := Merge(Layers{Project: l, User: user, Vars: vars}, nil)
			base, err2 := Merge(Layers{User: user, Vars: vars}, nil)
			if err1 != nil || err2 != nil {
				t.Fatal(err1, err2)
			}
			if in := widthOf(e).exceeds(widthOf(base)); in != "" {
				t.Fatalf("an untrusted project widens %s\n%s", in, text)
			}
		}
		for _, s := range l.Settings {
			if s.Origin.Line < 1 || s.Origin.Line > strings.Count(text, "\n")+1 {
				t.Fatalf("%s has line %d", s.Key, s.Origin.Line)
			}
		}
	})
}

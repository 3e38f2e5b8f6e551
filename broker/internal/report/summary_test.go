//go:build linux

package report

import (
	"strings"
	"testing"

	"sbx.example/sbx/broker/internal/arbiter"
	"sbx.example/sbx/broker/internal/decide"
)

// TestSuggestionsComeBack: what is suggested never names what will be another the next time, and never a home for it.
func TestSuggestionsComeBack(t *testing.T) {
	for file, want := range map[string]string{
		"/home/u/notes/todo.md":                    "sbx policy add allow '~/notes/todo.md' --access write",
		"/home/u/app/fish_variables.aB3xYz":        "sbx policy add allow '~/app/**' --access write",
		"/home/u/app/state.json.tmp.4711":          "sbx policy add allow '~/app/**' --access write",
		"/home/u/app/package-lock.json.3141592653": "sbx policy add allow '~/app/**' --access write",
		"/home/u/app/.goutputstream-X9K2M1":        "sbx policy add allow '~/app/**' --access write",
		"/home/u/app/run-77/socket-of-it":          "sbx policy add allow '~/app/**' --access write",
		"/home/u/app/0123456789abcdef0123/x":       "sbx policy add allow '~/app/**' --access write",
		"/home/u/.claude.json.tmp.12345.aB3xYz9":   "",
		"/tmpfoo/tmpab12cd":                        "",
		"/home/u/app/MyFileName.txt":               "sbx policy add allow '~/app/MyFileName.txt' --access write",
		"/home/u/app/release-2026-11.tar.gz":       "sbx policy add allow '~/app/release-2026-11.tar.gz' --access write",
		"/home/u/app/libfoo.so.1.2.3":              "sbx policy add allow '~/app/libfoo.so.1.2.3' --access write",
		"/home/u/app/python3.11/x86_64":            "sbx policy add allow '~/app/python3.11/x86_64' --access write",
		"/home/u/app/UPPER_CASE.HTML5":             "sbx policy add allow '~/app/UPPER_CASE.HTML5' --access write",
	} {
		p := &Accesses{Home: "/home/u"}
		p.Observe(arbiter.Event{Ask: decide.Ask{Op: "write", Path: file, Exe: "/usr/bin/x", PID: 77},
			Verdict: decide.Verdict{Reason: "not granted"}})
		got := p.list[0].Allow
		if strings.ReplaceAll(got, "'", "") != strings.ReplaceAll(want, "'", "") {
			t.Errorf("%s: %q, want %q", file, got, want)
		}
		if want == "" && !strings.Contains(p.list[0].Advice, "another each time") {
			t.Errorf("%s: %q", file, p.list[0].Advice)
		}
	}
}

// TestSummaryIsGrouped: many accesses of one program are under one heading, with one command for all that a rule
// allows; what no rule allows says so by itself, and a few stay lines of their own.
func TestSummaryIsGrouped(t *testing.T) {
	p := &Accesses{Home: "/home/u"}
	see := func(exe, op, file string) {
		p.Observe(arbiter.Event{Ask: decide.Ask{Op: op, Path: file, Exe: exe, PID: 7}, Verdict: decide.Verdict{
			Reason: "not granted"}})
	}
	see("/usr/bin/cat", "read", "/home/u/one")
	for _, f := range []string{"a", "b c", "c"} {
		see("/usr/bin/npm", "read", "/home/u/d/"+f)
	}
	see("/usr/bin/npm", "write", "/home/u/d/out")
	see("/usr/bin/npm", "write", "/home/u/d/out")
	see("/usr/bin/npm", "write", "/home/u/.x.tmp.4711")
	got := strings.Join(p.lines(), "\n")
	want := "blocked: read /home/u/one by cat[7]: sbx policy add allow '~/one'\n" +
		"blocked: 5 accesses by npm: sbx policy add allow '~/d/a' '~/d/b c' '~/d/c' && " +
		"sbx policy add allow '~/d/out' --access write\n" +
		"  read /home/u/d/a\n  read \"/home/u/d/b c\"\n  read /home/u/d/c\n  write /home/u/d/out (2 times)\n" +
		"  write /home/u/.x.tmp.4711: its name is another each time: sbx why /home/u"
	if strings.ReplaceAll(got, "'", "") != strings.ReplaceAll(want, "'", "") {
		t.Errorf("\n%s\nwant\n%s", got, want)
	}
}

package pathname

import (
	"strings"
	"testing"
)

func testVars() Vars {
	return Vars{Home: "/home/u", Project: "/home/u/proj", TmpDir: "/tmp", XDGConfigHome: "/home/u/.config"}
}

func pat(t testing.TB, s string) Pattern {
	t.Helper()
	p, err := ParsePattern(s, testVars())
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestPatternMatch(t *testing.T) {
	for _, c := range []struct{ pattern, yes, no string }{
		{"/x", "/x", "/xy /x/y / /y"},
		{"/", "/", "/x"},
		{"/x/*", "/x/y /x/*", "/x /x/y/z /xy"},
		{"/x/**", "/x /x/y /x/y/z", "/xy /xy/z /"},
		{"/**", "/ /x /x/y", ""},
		{"$PROJECT/**", "/home/u/proj /home/u/proj/a", "/home/u/proj-evil /home/u/proj-evil/x /home/u"},
		{"~/.ssh", "/home/u/.ssh", "/home/u/.ssh2 /home/v/.ssh"},
		{"$XDG_CONFIG_HOME/a", "/home/u/.config/a", "/a"},
		{"/x/a*b", "/x/ab /x/aXb /x/a*b", "/x/a /x/aXbc /x/a/b"},
		{"/x/*.pem", "/x/.pem /x/k.pem", "/x/k.pem2 /x/d/k.pem"},
		{"/x/a*b*c", "/x/abc /x/a1b2c", "/x/acb"},
		{"/x/aba*aba", "/x/abaaba", "/x/aba"},
		{"/x/**/y", "/x/y /x/a/y /x/a/b/y", "/x /x/y/z /x/ay"},
		{"/x/**/y/**", "/x/y /x/a/y/b", "/x/a"},
		{"/**/.env*", "/.env /a/.env.local", "/a/env"},
		{"/a//b/./c/", "/a/b/c", "/a/b"},
		{`/a/\xff`, "/a/\xff", "/a/\xfe /a/\xef\xbf\xbd"},
		{`/a/\*`, "/a/*", "/a/b"},
		{`/a/\\`, `/a/\`, "/a/x"},
		{"@abc*", "@abc @abc/d", "/abc @ab @"},
		{"/x/**", "", "x /x/../y /x//y /x/. /x/ \x00"},
	} {
		p := pat(t, c.pattern)
		for _, s := range strings.Fields(c.yes) {
			if !p.Match(s) {
				t.Errorf("%s should match %q", c.pattern, s)
			}
		}
		for _, s := range strings.Fields(c.no) {
			if p.Match(s) {
				t.Errorf("%s must not match %q", c.pattern, s)
			}
		}
		if q, err := ParsePattern(p.String(), Vars{}); err != nil || q.String() != p.String() || q.Compare(p) != 0 {
			t.Errorf("%s is written as %s: %v", c.pattern, p, err)
		}
	}
}

// TestPatternRefused is PL-05 and PL-06.
func TestPatternRefused(t *testing.T) {
	for s, why := range map[string]string{
		"": "empty", ".": "not absolute", "..": "not absolute", "x": "not absolute", "./x": "not absolute",
		"/x/../y": "not allowed", "/..": "not allowed", "$PROJECT/../.ssh": "not allowed", `/\x2e\x2e`: "not allowed",
		"~root/x": "~USER", "~x": "~USER", "/a\x00b": "NUL", "$NOPE/": "unknown variable", "${HOME}/x": "unknown variable",
		"$":               "unknown variable",
		"$SBX_TEST_TOKEN": "unknown variable", "$XDG_DATA_HOME/x": "is not set", "/a**": "whole component",
		"/a/**b": "whole component",
		`/a\`:    "backslash", `/a\q`: "backslash", `/a\x00`: "backslash", `/a\x2f`: "backslash", "@": "empty",
		strings.Repeat("/a", 65):  "more than 64",
		strings.Repeat("a", 9000): "too long",
	} {
		if _, err := ParsePattern(s, testVars()); err == nil || !strings.Contains(err.Error(), why) {
			t.Errorf("%.40q: %v, want %q", s, err, why)
		}
	}
	narrow := testVars()
	narrow.Narrow = true
	if _, err := ParsePattern("$HOME/x", narrow); err == nil || !strings.Contains(err.Error(), "project file") {
		t.Error(err)
	}
	if _, err := ParsePattern("~/x", narrow); err != nil {
		t.Error(err)
	}
	for _, home := range []string{"relative", "/a/../b", "/a/"} {
		if _, err := ParsePattern("~/x", Vars{Home: home}); err == nil ||
			!strings.Contains(err.Error(), "not a clean absolute path") {
			t.Errorf("home %q: %v", home, err)
		}
	}
	// What a variable contains is a name, never a wildcard.
	if p, err := ParsePattern("~/x", Vars{Home: "/h*"}); err != nil || p.Match("/hx/x") || !p.Match("/h*/x") {
		t.Error("a variable was read as a pattern", err)
	}
}

func TestPatternOrder(t *testing.T) {
	// From most to least specific.
	order := []string{"/a/b/c", "/a/b/c*d", "/a/b/c*", "/a/b/*", "/a/b/**/c", "/a/b/**", "/a/*", "/a/*/c", "/a/**/b/c",
		"/a/**", "/*/b", "/**/c", "/**"}
	for i, a := range order {
		for j, b := range order {
			d := pat(t, a).Compare(pat(t, b))
			if i < j && d <= 0 || i > j && d >= 0 || i == j && d != 0 {
				t.Errorf("Compare(%s, %s) = %d", a, b, d)
			}
		}
	}
	if pat(t, "/a").Compare(pat(t, "/a/**")) <= 0 {
		t.Error("/a must beat /a/**")
	}
}

func TestPatternCovers(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want bool
	}{
		{"/a/**", "/a", true}, {"/a/**", "/a/b/**", true}, {"/a/**", "/a/*", true}, {"/a/*", "/a/**", false},
		{"/a/*", "/a/b", true},
		{"/a/**/.env*", "/a/b/.env", true}, {"/a/**/.env*", "/a/b/**", false}, {"/a/**/.env*", "/a/.env.l*", true},
		{"/a/.env*", "/a/*", false},
		{"/**", "/**", true}, {"/a", "/a", true}, {"/a", "/b", false}, {"/a/**", "/**", false}, {"/a*b", "/aXb", true},
		{"@a*", "@ab", true}, {"@a*", "/ab", false},
	} {
		if got := pat(t, c.a).Covers(pat(t, c.b)); got != c.want {
			t.Errorf("%s covers %s: %v", c.a, c.b, got)
		}
	}
	for _, c := range []struct {
		p, dir string
		want   bool
	}{
		{"/a/b", "/a", true}, {"/a/b", "/a/b", true}, {"/a/b", "/a/b/c", false}, {"/a/b", "/c", false}, {"/**/x", "/c",
			true}, {"/a/**", "/a/b", true},
		{"/a/*/c", "/a/b", true}, {"/a", "/", true}, {"/ab*", "/abc", true}, {"@x", "/", false},
	} {
		if got := pat(t, c.p).Below(c.dir); got != c.want {
			t.Errorf("%s below %s: %v", c.p, c.dir, got)
		}
	}
}

func FuzzPattern(f *testing.F) {
	for _, s := range []string{"/a/**/b*c", `/\xff`, "~/x", "@a*b", "$PROJECT", "/a/**/**", "/"} {
		f.Add(s, "/a/b/c")
	}
	f.Fuzz(func(t *testing.T, text, path string) {
		p, err := ParsePattern(text, testVars())
		if err != nil {
			return
		}
		q, err := ParsePattern(p.String(), Vars{})
		if err != nil || q.String() != p.String() {
			t.Fatalf("%q is written as %q: %v", text, p, err)
		}
		if p.Match(path) != q.Match(path) || p.Match(path) && !p.MatchTree(path) {
			t.Fatalf("%q and %q disagree about %q", text, p, path)
		}
		if !p.Covers(q) || p.Compare(q) != 0 {
			t.Fatalf("%q does not cover itself", p)
		}
		lit, err := ParsePattern(Escape(path), Vars{})
		if clean, cerr := Clean(path); cerr == nil && clean == path && len(components(path)) <= maxComps {
			if err != nil || !lit.Match(path) {
				t.Fatalf("the literal pattern of %q does not match it: %v", path, err)
			}
			if p.Covers(lit) != p.Match(path) {
				t.Fatalf("%q: Covers and Match disagree about %q", p, path)
			}
			if p.Match(path) && !p.Below(path) {
				t.Fatalf("%q matches %q but is not below it", p, path)
			}
		}
	})
}

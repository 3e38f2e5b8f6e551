package policy

import (
	"strings"
	"testing"
	"time"
)

// What a rule denies or asks about by the name of a link is denied where that leads, too: an access is named by that. A
// narrower rule by the same link, and one of a stronger scope, stand. As controls the same without a link, and an allow
// by a link, which allows nothing elsewhere.
func TestRefusalsBehindLinks(t *testing.T) {
	const text = "[[rule]]\npath = \"/h/link/**\"\ndecision = \"deny\"\n" +
		"[[rule]]\npath = \"/h/link/open/**\"\ndecision = \"allow\"\n" +
		"[[rule]]\npath = \"/h/asked\"\ndecision = \"ask\"\n[[rule]]\npath = \"/h/free/**\"\ndecision = \"allow\"\n"
	plain := labelRules(t, ScopeUser, text)
	led := plain.Lead(strings.NewReplacer("/h/link", "/data", "/h/asked", "/srv/file", "/h/free", "/free").Replace)
	answered := led.With(ScopeSession, labelRules(t, ScopeSession,
		"[[rule]]\npath = \"/data/x\"\ndecision = \"allow\"\n").Rules()...)
	now := time.Now()
	for name, c := range map[string]struct {
		s    Store
		path string
		want string
	}{
		"denied": {led, "/data/x", "deny"}, "the control": {plain, "/data/x", ""}, "the place": {led, "/data", "deny"},
		"by its name": {led, "/h/link/x", "deny"}, "asked about": {led, "/srv/file", "ask"},
		"an exception by the link": {led, "/data/open/x", ""}, "an exception": {led, "/h/link/open/x", "allow"},
		"beside it": {led, "/database", ""}, "an allow": {led, "/free/x", ""}, "answered": {answered, "/data/x", "allow"},
		"answered about another": {answered, "/data/y", "deny"},
		"without the rule":       {led.Replace(ScopeUser, nil), "/data/x", ""},
	} {
		got := ""
		if r, ok := c.s.Match(Query{Kind: KindPath, Path: c.path, Access: Read, Now: now}); ok {
			got = r.Decision.String()
		}
		if got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
	if !led.Restricts("/data", Read, now) || plain.Restricts("/data", Read, now) || led.Restricts("/free", Read, now) {
		t.Error("a tree is not restricted where a refusal leads")
	}
	for place, want := range map[string]string{"/data/open/x": "/h/link/open/x", "/free": "/h/free", "/data/x": "",
		"/h/free": "", "/database": ""} {
		if got := strings.Join(led.Names(place), " "); got != want {
			t.Errorf("%s is allowed as %q, want %q", place, got, want)
		}
	}
	if got := led.Led(); len(got) != 2 || got[0].Path().String() != "/data/**" || got[1].Path().String() != "/srv/file" {
		t.Errorf("led: %v", got)
	}
}

package policy

import (
	"testing"

	"sbx.example/sbx/broker/internal/policy/pathname"
)

// TestPasses: a rule is about a place that acts outside of the sandbox if it names that, or something in it, before its
// first wildcard.
func TestPasses(t *testing.T) {
	const place = "/h/.config/systemd"
	acts := func(p string) string {
		if pathname.Within(p, place) {
			return "it is started"
		}
		return ""
	}
	for _, c := range []struct {
		pattern, path string
		passes        bool
	}{
		{place + "/**", place + "/user/x", false}, {place, place, false}, {place + "/user/x", place + "/user/x", false},
		{place + "/user/**", place + "/user/x", false}, {place + "/*", place + "/x", false},
		{place + "/*/x", place + "/user/x", false}, {"/h/.config/**", place + "/user/x", true},
		{"/h/.config/*", place, true}, {"/h/.config/s*/**", place + "/user/x", true}, {"/h/*/systemd/**", place + "/x", true},
		{"/h/.config/**", "/h/.config/free", false}, {"/**", place, true},
	} {
		why := mk(t, ScopeUser, KindPath, c.pattern, Write, Allow, false).Passes(c.path, acts)
		if (why != "") != c.passes {
			t.Errorf("%s about %s: %q", c.pattern, c.path, why)
		}
	}
}

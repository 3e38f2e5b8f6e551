package foreign

import (
	"strings"
	"testing"

	"sbx.example/sbx/broker/internal/policy"
)

// TestExportWithUnsaidRefusals: what another tool cannot be told to close keeps the grant above it out of the export,
// an end of a refusal is left out, and what may not be read may not be written either.
func TestExportWithUnsaidRefusals(t *testing.T) {
	vars := policy.Vars{Home: "/home/u", Project: "/home/u/proj"}
	const grant, ends = "[[rule]]\npath = \"~/w/**\"\naccess = \"write\"\ndecision = \"allow\"\n", "2126-01-01T00:00:00Z"
	deny := func(path, more string) string {
		return "[[rule]]\npath = '" + path + "'\naccess = \"read\"\ndecision = \"deny\"\n" + more
	}
	for what, c := range map[string]struct {
		rules, why     string
		granted        bool
		closed, config string
	}{
		"no refusal":               {grant, "", true, "", ""},
		"a name with a wildcard":   {grant + deny(`~/w/a\x3fb/**`, ""), "which cannot be said there", false, "", ""},
		"a hidden name with one":   {grant, "which cannot be said there", false, "", "[fs]\nhidden = ['~/w/a\\x3fb']\n"},
		"a name that is not below": {grant + deny(`~/v/a\x3fb/**`, ""), "wildcards there", true, "", ""},
		"a refusal that ends": {grant + deny("~/w/soon/**", "expires = "+ends+"\n"), "written without its end", true,
			"/w/soon", ""},
	} {
		e, store := inForceWith(t, vars, c.config, c.rules)
		for _, format := range []string{"srt", "codex", "claude"} {
			text, missing, err := Export(format, e, store, nil)
			if err != nil {
				t.Fatal(err)
			}
			var said strings.Builder
			for _, m := range missing {
				said.WriteString(m.Name + ": " + m.Why + "\n")
			}
			if granted := strings.Contains(text, `u/w"`) || strings.Contains(text, `"Edit(~/w/**)"`); granted != c.granted {
				t.Errorf("%s for %s: ~/w is granted: %v\n%s", what, format, granted, text)
			}
			if !strings.Contains(said.String(), c.why) || !strings.Contains(text, c.closed) {
				t.Errorf("%s for %s: %q is not said, or %q not closed\n%s\n%s", what, format, c.why, c.closed, said.String(), text)
			}
			if _, after, _ := strings.Cut(text, `"denyWrite"`); format == "srt" && !strings.Contains(after, c.closed) {
				t.Errorf("%s: %q can be written\n%s", what, c.closed, text)
			}
		}
	}
}

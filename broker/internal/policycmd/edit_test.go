package policycmd

import (
	"strings"
	"testing"
)

// What a project's file says is shown to who is to trust it: nothing of it acts upon the terminal, and could take a
// line away.
func TestChangesSayNothingToTheTerminal(t *testing.T) {
	const bad, want = "\x1b[1A\x1b[2K\u009b\u202e\n", `\x1b[1A\x1b[2K\u009b\u202e\n`
	for name, row := range map[string]changeRow{
		"a value":         {Key: "env.set", Old: "map[]", New: "map[X:" + bad + "]", Widens: true},
		"one that goes":   {Key: "env.set", Old: "map[X:" + bad + "]", New: "map[]"},
		"a rule":          {Key: "rule", Old: "(none)", New: "allow read ~/" + bad},
		"a rule that was": {Key: "rule", Old: "allow read ~/" + bad, New: "(none)"},
	} {
		text := changesText([]changeRow{row})
		if !strings.Contains(text, want) || strings.ContainsAny(text, "\x1b\u009b\u202e") {
			t.Errorf("%s: %q", name, text)
		}
	}
	plain := changesText([]changeRow{{Key: "env.set", Old: "map[]", New: `map[X:"a b" ~/c]`}}) // control
	if !strings.HasPrefix(plain, "  env.set: map[] -> map[X:\"a b\" ~/c]\n") {
		t.Errorf("%q", plain)
	}
}

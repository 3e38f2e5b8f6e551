package policy

import (
	"strings"
	"testing"
)

// A decoy stands for one file that is denied, and is kept when its rule is written again.
func TestDecoyRules(t *testing.T) {
	vars := Vars{Home: "/h", Project: "/h/p"}
	for _, c := range []struct {
		text, want string // "": it is right
	}{
		{"path = \"~/.netrc\"\ndecision = \"deny\"\ndecoy = true", ""},
		{"path = \"~/.netrc\"\ndecision = \"allow\"\ndecoy = true", "one file that is denied"},
		{"path = \"~/.netrc\"\ndecision = \"reveal\"\ndecoy = true", "one file that is denied"},
		{"path = \"~/.ssh/*\"\ndecision = \"deny\"\ndecoy = true", "one file that is denied"},
		{"path = \"~/.netrc\"\naccess = \"write\"\ndecision = \"deny\"\ndecoy = true", "one file that is denied"},
		{"host = \"a.test\"\ndecision = \"deny\"\ndecoy = true", "decoy goes with path"},
		{"socket = \"/s\"\ndecision = \"deny\"\ndecoy = true", "decoy goes with path"},
		{"path = \"~/.netrc\"\ndecision = \"deny\"\ndecoy = \"yes\"", "decoy: "},
	} {
		_, err := ParseRules([]byte("version = 1\n[[rule]]\n"+c.text+"\n"), "/h/policy.toml", ScopeUser, vars)
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: %v, want %q", c.text, err, c.want)
		}
	}
	r, err := NewRule(Rule{Kind: KindPath, Pattern: "~/.netrc", Decision: Deny, Decoy: true}, vars)
	if err != nil {
		t.Fatal(err)
	}
	again, err := ParseRules([]byte("version = 1\n"+FormatRule(r)), "/h/policy.toml", ScopeUser, vars)
	if err != nil || len(again) != 1 || again[0].String() != r.String() || !again[0].Decoy {
		t.Errorf("written and read: %v, %v", again, err)
	}
	plain := Rule{Kind: KindPath, Decision: Deny}
	if plain.keep(&r); !plain.Decoy {
		t.Error("a refusal that replaces it has no decoy any more")
	}
	plain = Rule{Kind: KindPath, Decision: Allow}
	if plain.keep(&r); plain.Decoy {
		t.Error("what is allowed has a decoy")
	}
}

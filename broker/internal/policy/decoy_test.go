package policy

import (
	"strings"
	"testing"
)

// A decoy stands for one file that is denied.
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
}

package setting

import (
	"strings"
	"testing"

	"sbx.example/sbx/broker/internal/policy"
)

// TestSet: a setting takes the place of what stood there, however many lines that had, and nothing else changes.
func TestSet(t *testing.T) {
	vars := policy.Vars{Home: "/home/u"}
	const file = "# top\n[fs]\nread_only = [\n  \"~/a\", # one\n  \"~/b\",\n]\nhidden = [\"~/h\"]\n\n[limits]\npids = 5\n"
	for name, x := range map[string]struct {
		old, key, words, want string // words apart by |; want: the file, or with a ! the error
	}{
		"several lines": {file, "fs.read_only", "~/c", strings.Replace(file,
			"read_only = [\n  \"~/a\", # one\n  \"~/b\",\n]\n", "read_only = [\"~/c\"]\n", 1)},
		"a number":      {file, "limits.pids", "7", strings.Replace(file, "pids = 5", "pids = 7", 1)},
		"out":           {file, "limits.pids", "", strings.Replace(file, "pids = 5\n", "", 1)},
		"a new section": {"", "network.allow", "true", "[network]\nallow = true\n"},
		"words":         {"", "env.pass", "A|B_*", "[env]\npass = [\"A\", \"B_*\"]\n"},
		"no such":       {"", "limits.pid", "7", "!did you mean limits.pids?"},
		"wrong":         {"", "limits.pids", "many", "!limits.pids"},
		"two":           {"", "limits.pids", "1|2", "!limits.pids"},
		"smuggled":      {"", "limits.pids", "1\n[network]\nallow = true", "!limits.pids"},
		"smuggled text": {"", "sandbox.profile", "x\"\n[network]", "!sandbox.profile"},
		"a table":       {"", "env.set", "A=1|B=x y", "[env]\nset = { \"A\" = \"1\", \"B\" = \"x y\" }\n"},
		"a word":        {"", "sandbox.profile", "true", "[sandbox]\nprofile = \"true\"\n"},
		"ports":         {"", "network.host_ports", "80", "[network]\nhost_ports = [80]\n"},
		"a bad file":    {"nonsense", "limits.pids", "7", "!config.toml:1"},
	} {
		var words []string
		if x.words != "" {
			words = strings.Split(x.words, "|")
		}
		got, err := Set([]byte(x.old), "/c/config.toml", policy.ScopeUser, x.key, words, vars)
		if want, bad := strings.CutPrefix(x.want, "!"); bad {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v, want %q\n%s", name, err, want, got)
			}
		} else if err != nil || string(got) != x.want {
			t.Errorf("%s: %v\n%s\nwant\n%s", name, err, got, x.want)
		}
	}
}

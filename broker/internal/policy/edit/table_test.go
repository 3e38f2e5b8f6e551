package edit

import "testing"

func TestTable(t *testing.T) {
	lines := []string{`hosts = ["a"]`}
	for name, x := range map[string]struct {
		old   string
		lines []string
		want  string
	}{
		"no file":    {"", lines, "[credential.x]\nhosts = [\"a\"]\n"},
		"at the end": {"[fs]\ncaches = \"rw\"", lines, "[fs]\ncaches = \"rw\"\n\n[credential.x]\nhosts = [\"a\"]\n"},
		"its place": {"[credential.x]\nenv = [\n\"B\",\n]\n\n# next\n[fs]\n", lines,
			"[credential.x]\nhosts = [\"a\"]\n\n# next\n[fs]\n"},
		"taken out":   {"# mine\n[credential.x]\nenv = []\n[fs]\na = 1\n", nil, "# mine\n[fs]\na = 1\n"},
		"another one": {"[credential.xy]\nenv = []\n", nil, "[credential.xy]\nenv = []\n"},
		"the last":    {"[fs]\n[credential.x]\nenv = []\n", nil, "[fs]\n"},
	} {
		if got, err := Table([]byte(x.old), "credential.x", x.lines); err != nil || string(got) != x.want {
			t.Errorf("%s: %q, want %q (%v)", name, got, x.want, err)
		}
	}
}

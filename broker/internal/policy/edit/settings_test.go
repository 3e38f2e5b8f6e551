package edit

import (
	"strings"
	"testing"

	"sbx.example/sbx/broker/internal/policy"
)

// TestSetting: a setting takes the place of what stood there, however many lines that had, and nothing else changes.
func TestSetting(t *testing.T) {
	vars := policy.Vars{Home: "/home/u"}
	const file = "# top\n[fs]\nread_only = [\n  \"~/a\", # one\n  \"~/b\",\n]\nhidden = [\"~/h\"]\n\n[limits]\npids = 5\n"
	for name, x := range map[string]struct {
		old, key, words, want string // words apart by |; want: the file, or with a ! the error
	}{
		"several lines": {file, "fs.read_only", "~/c", strings.Replace(file, "  \"~/a\", # one\n  \"~/b\",\n",
			"  \"~/c\",\n", 1)},
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
		"its place": {"[fs]\n  shell_files = \"hide\" # never\n[env]\n", "fs.shell_files", "show",
			"[fs]\n  shell_files = \"show\" # never\n[env]\n"},
		"a section": {"[fs] # places\ncaches = \"rw\"\n", "fs.shell_files", "show",
			"[fs] # places\nshell_files = \"show\"\ncaches = \"rw\"\n"},
		"another section": {"# mine\n[sandbox]\nmode = \"static\"", "fs.shell_files", "show",
			"# mine\n[sandbox]\nmode = \"static\"\n\n[fs]\nshell_files = \"show\"\n"},
		"dotted": {"fs.shell_files = \"hide\"\nfs.caches = \"rw\"\n", "fs.shell_files", "show",
			"fs.shell_files = \"show\"\nfs.caches = \"rw\"\n"},
		"inline":     {"fs = { caches = \"rw\" }\n", "fs.shell_files", "show", "!config.toml:"},
		"no word":    {"", "fs.shell_files", "sometimes", "!fs.shell_files"},
		"a bad file": {"nonsense", "limits.pids", "7", "!config.toml:1"},
	} {
		var words []string
		if x.words != "" {
			words = strings.Split(x.words, "|")
		}
		file := Target{Dir: "/c", Name: "config.toml", Scope: policy.ScopeUser}
		got, err := Setting(file, vars, x.key, words...)([]byte(x.old))
		if want, bad := strings.CutPrefix(x.want, "!"); bad {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v, want %q\n%s", name, err, want, got)
			}
		} else if err != nil || string(got) != x.want {
			t.Errorf("%s: %v\n%s\nwant\n%s", name, err, got, x.want)
		}
	}
}

// TestSettingKeepsComments: those behind a value and above it, those of each entry of a list that stays, and those that
// head several.
func TestSettingKeepsComments(t *testing.T) {
	const list = "[fs]\n# places\nread_only = [ # mine\n  # work\n  \"~/a\", # one\n\n  # both\n  '~/b' # two, #2\n" +
		"  # last\n] # end\n# next\nhidden = [\"~/h\"] # why\n"
	const inline = "[fs]\nread_only = [\"~/a\", # one\n  # two\n  \"~/b#\"] # end\ncaches = \"rw\"\n"
	for name, x := range map[string]struct{ old, key, words, want string }{
		"one more": {list, "fs.read_only", "~/a|~/b|~/c", strings.Replace(list, "  '~/b' # two, #2\n",
			"  '~/b', # two, #2\n  \"~/c\",\n", 1)},
		"one less": {list, "fs.read_only", "~/b", strings.Replace(strings.Replace(list, "  \"~/a\", # one\n", "", 1),
			"'~/b' #", "'~/b', #", 1)},
		"another order": {list, "fs.read_only", "~/b|~/a", strings.Replace(list, "  # work\n  \"~/a\", # one\n\n  # both\n"+
			"  '~/b' # two, #2\n", "\n  # both\n  '~/b', # two, #2\n  # work\n  \"~/a\", # one\n", 1)},
		"all others": {list, "fs.read_only", "~/c", strings.Replace(list, "  # work\n  \"~/a\", # one\n\n  # both\n"+
			"  '~/b' # two, #2\n", "  \"~/c\",\n  # work\n\n  # both\n", 1)},
		"twice":  {list, "fs.hidden", "~/h|~/h", strings.Replace(list, `["~/h"] # why`, `["~/h", "~/h"] # why`, 1)},
		"inline": {inline, "fs.read_only", "~/a", "[fs]\n# one\n# two\nread_only = [\"~/a\"] # end\ncaches = \"rw\"\n"},
		"no end": {"[limits]\npids = 5 # few", "limits.pids", "7", "[limits]\npids = 7 # few\n"},
		"a sign": {"[sandbox]\nprompt_command = \"a#b\"\n", "sandbox.prompt_command", "c",
			"[sandbox]\nprompt_command = \"c\"\n"},
	} {
		file := Target{Dir: "/c", Name: "config.toml", Scope: policy.ScopeUser}
		got, err := Setting(file, policy.Vars{Home: "/home/u"}, x.key, strings.Split(x.words, "|")...)([]byte(x.old))
		if err != nil || string(got) != x.want {
			t.Errorf("%s: %v\n%s\nwant\n%s", name, err, got, x.want)
		}
	}
}

func TestRemovingKeepsText(t *testing.T) {
	tg := target(t)
	pick := func(pattern string) func(policy.Rule) bool {
		return func(r policy.Rule) bool { return r.Pattern == pattern }
	}
	out, err := Removing(tg, testVars(), pick("evil.test"))([]byte(sample))
	if err != nil || strings.Contains(string(out), "evil") || !strings.Contains(string(out), "# the end") ||
		!strings.Contains(string(out), "# all of it") {
		t.Fatalf("%v\n%s", err, out)
	}
	if _, err := Removing(tg, testVars(), pick("nobody.test"))([]byte(sample)); err == nil ||
		!strings.Contains(err.Error(), "no such rule") {
		t.Fatal(err)
	}
	both, err := Removing(tg, testVars(), func(policy.Rule) bool { return true })([]byte(sample))
	if err != nil || strings.Contains(string(both), "[[rule]]") || !strings.Contains(string(both), "# my rules") {
		t.Fatalf("%v\n%s", err, both)
	}
}

func TestAddSettings(t *testing.T) {
	v := testVars()
	old := "# mine\n[fs]   # files\nread_only = [\"/a\"]\n\n[limits]\npids = 7\n"
	list := []policy.Setting{
		{Key: "fs.writable", Value: []string{v.Project, v.Home + "/out dir"}},
		{Key: "fs.read_only", Value: []string{"/b"}},
		{Key: "network.allow", Value: true},
		{Key: "limits.pids", Value: 7},
	}
	out, taken, err := AddSettings([]byte(old), "config.toml", policy.ScopeUser, list, v)
	if err != nil {
		t.Fatal(err)
	}
	want := "# mine\n[fs]   # files\nwritable = [\"$PROJECT\", \"~/out dir\"]\nread_only = [\"/a\"]\n\n[limits]\npids " +
		"= 7\n\n[network]\nallow = true\n"
	if string(out) != want {
		t.Fatalf("got\n%s", out)
	}
	if len(taken) != 1 || taken[0].Name != "fs.read_only" || !strings.Contains(taken[0].Why, "config.toml:3") {
		t.Fatal(taken)
	}
	inline := []byte("fs = {read_only = []}\n")
	if _, _, err := AddSettings(inline, "config.toml", policy.ScopeUser, list[:1], v); err == nil {
		t.Fatal("a section that is written inline was extended")
	}
}

package guard

import "testing"

func TestGitCredentials(t *testing.T) {
	for _, c := range []struct{ name, text, key, command string }{
		{"none", "[remote \"origin\"]\n\turl = https://git.example/a/b.git\n", "", ""},
		{"a user", "[remote \"origin\"]\n\turl = https://alice@git.example/a/b.git\n", "", ""},
		{"ssh", "[remote \"origin\"]\n\turl = git@git.example:a/b.git\n", "", ""},
		{"password", "[remote \"origin\"]\n\turl = https://u:p@git.example/a/b.git\n", "remote.origin.url", "git remote set-url origin https://git.example/a/b.git"},
		{"token as the user", "[remote \"up\"]\n\turl = https://ghp_0123@git.example/a\n", "remote.up.url", "git remote set-url up https://git.example/a"},
		{"pushurl", "[remote \"o\"]\n\tpushurl = https://u:p@git.example/a\n", "remote.o.pushurl", "git config --unset-all remote.o.pushurl"},
		{"one line", "[remote \"o\"] url = \"https://u:p@git.example/a\"\n", "remote.o.url", "git remote set-url o https://git.example/a"},
		{"header", "[http \"https://git.example/\"]\n\textraheader = AUTHORIZATION: basic eDp5\n", "http.https://git.example/.extraheader", "git config --unset-all http.https://git.example/.extraheader"},
		{"other header", "[http]\n\textraheader = X-Trace: 1\n", "", ""},
		{"instead of", "[url \"https://u:p@git.example/\"]\n\tinsteadOf = https://git.example/\n", "url.insteadof", "git config --edit"},
		{"an at in the path", "[remote \"o\"]\n\turl = https://git.example/u:p@x\n", "", ""},
		{"broken", "[remote\n", "", ""},
	} {
		got := GitCredentials([]byte(c.text))
		if c.key == "" && len(got) > 0 || c.key != "" && (len(got) != 1 || got[0].Key != c.key || got[0].Command != c.command) {
			t.Errorf("%s: %v", c.name, got)
		}
	}
}

// FuzzGitCredentials: no command that is shown has the password in it.
func FuzzGitCredentials(f *testing.F) {
	f.Add("https://u:p@git.example/a")
	f.Fuzz(func(t *testing.T, value string) { GitCredentials([]byte("[remote \"o\"]\n\turl = " + value + "\n")) })
}

package guard

import "testing"

func TestGitCredentials(t *testing.T) {
	for _, c := range []struct{ name, text, key, command string }{
		{"none", "[remote \"origin\"]\n\turl = https://git.example/a/b.git\n", "", ""},
		{"a user", "[remote \"origin\"]\n\turl = https://alice@git.example/a/b.git\n", "", ""},
		{"ssh", "[remote \"origin\"]\n\turl = git@git.example:a/b.git\n", "", ""},
		{"password", "[remote \"origin\"]\n\turl = https://u:p@git.example/a/b.git\n", "remote.origin.url",
			"git remote set-url origin https://git.example/a/b.git"},
		{"token as the user", "[remote \"up\"]\n\turl = https://ghp_0123@git.example/a\n", "remote.up.url",
			"git remote set-url up https://git.example/a"},
		{"pushurl", "[remote \"o\"]\n\tpushurl = https://u:p@git.example/a\n", "remote.o.pushurl",
			"git config --unset-all remote.o.pushurl"},
		{"one line", "[remote \"o\"] url = \"https://u:p@git.example/a\"\n", "remote.o.url",
			"git remote set-url o https://git.example/a"},
		{"header", "[http \"https://git.example/\"]\n\textraheader = AUTHORIZATION: basic eDp5\n",
			"http.https://git.example/.extraheader", "git config --unset-all http.https://git.example/.extraheader"},
		{"other header", "[http]\n\textraheader = X-Trace: 1\n", "", ""},
		{"instead of", "[url \"https://u:p@git.example/\"]\n\tinsteadOf = https://git.example/\n", "url.insteadof",
			"git config --edit"},
		{"an at in the path", "[remote \"o\"]\n\turl = https://git.example/u:p@x\n", "", ""},
		{"broken", "[remote\n", "", ""},
		{"comment", "[user]\n\tname = a ; mail me\n# https://git.example/a, user: b\n", "", ""},
		{"address in a comment", "[user]\n# url=https://u:p@git.example/a\n", "a comment", "git config --edit"},
		{"token in a comment", "[user]\n\tname = a ; token:ghp_0123\n", "a comment", "git config --edit"},
		{"header in a comment", "; Authorization: basic eDp5\n[user]\n", "a comment", "git config --edit"},
	} {
		got := GitCredentials([]byte(c.text))
		if c.key == "" && len(got) > 0 || c.key != "" && (len(got) != 1 || got[0].Key != c.key ||
			got[0].Command != c.command) {
			t.Errorf("%s: %v", c.name, got)
		}
	}
}

func TestWithoutCredentials(t *testing.T) {
	for _, c := range []struct{ name, text, want string }{
		{"password", "[remote \"o\"]\n\turl = https://u:p@git.example/a\n",
			"[remote \"o\"]\n\turl = https://hidden@git.example/a\n"},
		{"token twice", "[remote \"o\"]\n\turl = https://ghp_1@git.example/a\n\t# https://ghp_1@git.example/b\n",
			"[remote \"o\"]\n\turl = https://hidden@git.example/a\n\t# https://hidden@git.example/b\n"},
		{"header", "[http]\n\textraheader = Authorization: basic eDp5\n", "[http]\n\textraheader = X-Sbx: hidden\n"},
		{"instead of", "[url \"https://u:p@git.example/\"]\n\tinsteadOf = gh:\n",
			"[url \"https://hidden@git.example/\"]\n\tinsteadOf = gh:\n"},
		{"none", "[user]\n\tname = a\n", "[user]\n\tname = a\n"},
		{"comments", "[user] ; mine\n\tname = a # glpat-1\r\n;https://u:p@h/a\n# x\n",
			"[user] ; mine\n\tname = a # hidden\r\n# hidden\n# x\n"},
		{"written otherwise than read", "[remote \"o\"]\n\turl = https://u:p\"\"q@git.example/a\n", ""},
	} {
		got, ok := WithoutCredentials([]byte(c.text))
		if string(got) != c.want || ok != (c.want != "") {
			t.Errorf("%s: %q, %v", c.name, got, ok)
		}
	}
}

// FuzzGitCredentials: no command that is shown has the password in it, and what is shown of the file has none.
func FuzzGitCredentials(f *testing.F) {
	f.Add("https://u:p@git.example/a")
	f.Fuzz(func(t *testing.T, value string) {
		config := []byte("[remote \"o\"]\n\turl = " + value + "\n")
		GitCredentials(config)
		if shown, ok := WithoutCredentials(config); ok && len(GitCredentials(shown)) > 0 {
			t.Errorf("%q", shown)
		}
	})
}

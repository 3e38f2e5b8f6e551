package guard

import "testing"

const plain = "[core]\n\trepositoryformatversion = 0\n[remote \"origin\"]\n\turl = /srv/x\n"

func TestCheckGitConfig(t *testing.T) {
	for _, c := range []struct {
		name, next string
		ok         bool
	}{
		{"nothing changed", plain, true},
		{"user name", plain + "[user]\n\tname = A\n", true},
		{"upstream", plain + "[branch \"main\"]\n\tremote = origin\n\tmerge = refs/heads/main\n", true},
		{"remote", plain + "[remote \"b\"]\n\turl = /srv/y\n\tfetch = +refs/heads/*:refs/remotes/b/*\n", true},
		{"submodule", plain + "[submodule \"m\"]\n\tactive = true\n\turl = /srv/m\n", true},
		{"fsmonitor", plain + "[core]\n\tfsmonitor = /tmp/x\n", false},
		{"same line", plain + "[core] fsmonitor = /tmp/x\n", false},
		{"upper case", plain + "[CORE]\n\tHooksPath = .\n", false},
		{"continued", plain + "[core]\n\thooks\\\nPath = .\n", false},
		{"boolean with comment", plain + "[core]\n\tfsmonitor ; yes\n", false},
		{"carriage return", plain + "[core]\r\n\tsshCommand = x\r\n", false},
		{"alias", plain + "[alias]\n\tst = !sh\n", false},
		{"include", plain + "[include]\n\tpath = ../x\n", false},
		{"filter", plain + "[filter \"x\"]\n\tsmudge = sh\n", false},
		{"subsection with bracket", plain + "[diff \"a]b\"]\n\tcommand = sh\n", false},
		{"ext transport", plain + "[remote \"e\"]\n\turl = ext::sh -c id\n", false},
		{"broken header", plain + "[core\n", false},
		{"byte order mark", "\ufeff[core]\n\teditor = x\n", false},
	} {
		if err := CheckGitConfig(".git/config", []byte(plain), []byte(c.next)); (err == nil) != c.ok {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

func TestCheckGitConfigKeepsWhatWasThere(t *testing.T) {
	old := plain + "[core]\n\tfsmonitor = true\n"
	if err := CheckGitConfig(".git/config", []byte(old), []byte(old+"[user]\n\tname = A\n")); err != nil {
		t.Error(err)
	}
	if err := CheckGitConfig(".git/config", []byte(old), []byte(plain+"[core]\n\tfsmonitor = /tmp/evil\n")); err == nil {
		t.Error("another value for a key that was there is another program")
	}
}

func FuzzCheckGitConfig(f *testing.F) {
	f.Add(plain)
	f.Fuzz(func(t *testing.T, s string) {
		if err := CheckGitConfig(".git/config", []byte(s), []byte(s)); err != nil {
			if _, bad := dangerous(s); bad == nil {
				t.Fatalf("unchanged file refused: %v", err)
			}
		}
	})
}

func TestSubmoduleWorktree(t *testing.T) {
	for _, c := range []struct {
		rel, value string
		ok         bool
	}{
		{".git/modules/sub/config", "../../../sub", true},
		{".git/modules/lib/sub/config", "../../../../lib/sub", true},
		{".git/modules/a/modules/b/config", "../../../../../a/b", true},
		{".git/modules/sub/config", "../../../other", false},
		{".git/modules/sub/config", "../../../../sub", false},
		{".git/modules/sub/config", "/home", false},
		{".git/modules/sub/config", "../../../sub/..", false},
		{".git/modules/.vscode/config", "../../../.vscode", false},
		{".git/modules/.git/config", "../../../.git", false},
		{".git/modules/x/../../y/config", "../../../../../../x/../../y", false},
		{".git/config", "../sub", false},
		{".git/worktrees/w/config.worktree", "../../../w", false},
	} {
		if err := CheckGitConfig(c.rel, nil, []byte("[core]\n\tworktree = "+c.value+"\n")); (err == nil) != c.ok {
			t.Errorf("%s: %s: %v", c.rel, c.value, err)
		}
	}
}

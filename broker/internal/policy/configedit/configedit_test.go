package configedit

import (
	"os"
	"path/filepath"
	"testing"

	"sbx.example/sbx/broker/internal/policy"
)

func TestSet(t *testing.T) {
	for _, c := range []struct{ name, old, want string }{
		{"no file", "", "[fs]\nshell_files = \"show\"\n"},
		{"no section", "# mine\n[sandbox]\nmode = \"static\"",
			"# mine\n[sandbox]\nmode = \"static\"\n\n[fs]\nshell_files = \"show\"\n"},
		{"a section", "[fs] # places\ncaches = \"rw\"\n[env]\npass = []\n",
			"[fs] # places\nshell_files = \"show\"\ncaches = \"rw\"\n[env]\npass = []\n"},
		{"the key", "[fs]\n  shell_files = \"hide\" # never\n[env]\n", "[fs]\n  shell_files = \"show\"\n[env]\n"},
		{"dotted", "fs.shell_files = \"hide\"\nfs.caches = \"rw\"\n", "fs.shell_files = \"show\"\nfs.caches = \"rw\"\n"},
	} {
		dir := t.TempDir()
		target := policy.Target{Dir: dir, Name: "config.toml", Scope: policy.ScopeUser, UID: os.Getuid()}
		if c.old != "" {
			if err := os.WriteFile(target.Path(), []byte(c.old), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.Chmod(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := Set(target, "fs.shell_files", "show"); err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
		if got, _ := os.ReadFile(filepath.Join(dir, "config.toml")); string(got) != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
	// What cannot be extended stays as it is.
	for _, old := range []string{"fs = { caches = \"rw\" }\n", "not toml ["} {
		dir := t.TempDir()
		target := policy.Target{Dir: dir, Name: "config.toml", Scope: policy.ScopeUser, UID: os.Getuid()}
		if err := os.WriteFile(target.Path(), []byte(old), 0o600); err != nil {
			t.Fatal(err)
		}
		if Set(target, "fs.shell_files", "show") == nil {
			t.Errorf("%q was changed", old)
		}
		if got, _ := os.ReadFile(target.Path()); string(got) != old {
			t.Errorf("%q became %q", old, got)
		}
	}
	if Set(policy.Target{}, "fs.shell_files", "sometimes") == nil || Set(policy.Target{}, "fs.ask", "show") == nil {
		t.Error("what is no word of the key was accepted")
	}
}

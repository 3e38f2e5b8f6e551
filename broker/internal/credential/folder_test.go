//go:build linux

package credential

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sbx.example/sbx/broker/internal/planner"
	"sbx.example/sbx/broker/internal/policy"
	"sbx.example/sbx/shared/proxied"
)

// withLogins is a run with these logins, which have a key to seal to.
func withLogins(t *testing.T, list ...policy.Credential) *Grants {
	t.Helper()
	g := grants(list...)
	g.sealed = filepath.Join(t.TempDir(), policy.SecretsFolder)
	g.by.Sets = func(string) bool { return false }
	if err := os.Mkdir(g.sealed, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(g.sealed, proxied.PublicKey), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	return g
}

func knownLogin(name, kind string) policy.Credential {
	c := policy.Credential{Name: name, Kind: kind}
	c.KnowLogin()
	return c
}

// A login keeps a folder, which the variable names that its table says, or its kind. git asks the program for a
// password.
func TestFolders(t *testing.T) {
	own := knownLogin("own", "github-login")
	own.LoginFolder = "MY_DIR"
	for variable, c := range map[string]policy.Credential{"GH_CONFIG_DIR": knownLogin("github-login", ""), "MY_DIR": own} {
		g, in := withLogins(t, c), &planner.Input{Env: []string{"GH_CONFIG_DIR=/of/the/host", "MY_DIR=/x"}}
		if err := g.add(c.Name, "--with", in); err != nil {
			t.Fatal(err)
		}
		dir, at := filepath.Join(filepath.Dir(g.sealed), "logins", c.Name), "/run/sbx/login/"+c.Name
		if !slices.Equal(in.Folders, []planner.Folder{{Path: at, Source: dir, Why: "credential " + c.Name}}) ||
			!slices.Contains(in.Env, variable+"="+at) || len(in.Env) != 2 {
			t.Errorf("%s: %+v %q", c.Name, in.Folders, in.Env)
		}
		if key := "credential.https://github.com.helper"; !slices.Equal(g.gitKeys, [][2]string{{key, ""},
			{key, "!gh auth git-credential"}}) {
			t.Errorf("git is told %q", g.gitKeys)
		}
		if _, err := os.Lstat(dir); !os.IsNotExist(err) {
			t.Errorf("it is there before the run begins: %v", err)
		}
		if err := g.MakeFolders(); err != nil {
			t.Fatal(err)
		}
		for _, d := range []string{dir, filepath.Dir(dir)} {
			if info, err := os.Lstat(d); err != nil || info.Mode().Perm() != 0o700 {
				t.Errorf("%s: %v, %v", d, info, err)
			}
		}
	}
	if g, in := withLogins(t, knownLogin("codex-login", "")), (&planner.Input{}); g.add("codex-login", "", in) != nil ||
		len(in.Folders)+len(g.gitKeys) > 0 || g.MakeFolders() != nil {
		t.Errorf("one that needs none: %+v %q", in.Folders, g.gitKeys)
	}
}

// Who gives the variable to the program names a folder of his own. Two logins cannot have one variable.
func TestFolderOfAPerson(t *testing.T) {
	ours, other := knownLogin("github-login", ""), knownLogin("other", "github-login")
	other.Login = "https://github.test/token"
	for _, env := range []string{"GH_CONFIG_DIR=/mine", "GH_CONFIG_DIR="} {
		g, in := withLogins(t, ours, other), &planner.Input{Env: []string{env}}
		g.by.Sets = func(variable string) bool { return variable == "GH_CONFIG_DIR" }
		for _, c := range []policy.Credential{ours, other} {
			if err := g.add(c.Name, "--with", in); err != nil || len(in.Folders) > 0 || !slices.Equal(in.Env, []string{env}) {
				t.Errorf("%s: %v %+v %q", c.Name, err, in.Folders, in.Env)
			}
		}
	}
	g, in := withLogins(t, ours, other), &planner.Input{}
	g.by.Sets = func(string) bool { return true } // by a name that is not set here
	if err := g.add(ours.Name, "--with", in); err != nil || len(in.Folders) != 1 {
		t.Errorf("%v %+v", err, in.Folders)
	}
	if err := g.add(other.Name, "--with", in); err == nil || !strings.Contains(err.Error(), "have a folder each") {
		t.Errorf("two: %v", err)
	}
}

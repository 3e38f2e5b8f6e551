//go:build linux

package selftest

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestNeedsOfSuites gives needs.sh interpreters of several releases. Debian names the package of Python's own tests for
// the version, so that is what has to be asked for.
func TestNeedsOfSuites(t *testing.T) {
	t.Parallel()
	needSandbox(t)
	dir := filepath.Join(shop.dir, "pythons") // where the ordinary user can go
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ version, tests, want string }{
		{"3.9", "exit 1", "apt-get install libpython3.9-testsuite\n"},
		{"3.11", "exit 1", "apt-get install libpython3.11-testsuite\n"},
		{"3.13", "exit 1", "apt-get install libpython3.13-testsuite\n"},
		{"3.13", "exit 0", ""}, // control: they are there
	} {
		python := filepath.Join(dir, "python"+c.version)
		script := "#!/bin/sh\ncase $2 in *test_os*) " + c.tests + " ;; esac\necho " + c.version + "\n"
		if err := os.WriteFile(python, []byte(script), 0o755); err != nil {
			t.Fatal(err)
		}
		got := needsOfSuites(t, python)
		if !strings.Contains(got, c.want) || c.want == "" && strings.Contains(got, "testsuite") {
			t.Errorf("Python %s, %s: it says %q, want %q in it", c.version, c.tests, got, c.want)
		}
	}
	if got := needsOfSuites(t, filepath.Join(dir, "none")); !strings.Contains(got, "apt-get install python3\n") {
		t.Errorf("without Python it says %q", got)
	}
}

// needsOfSuites returns what needs.sh tells an ordinary user, for whom it installs nothing.
func needsOfSuites(t *testing.T, python string) string {
	t.Helper()
	script, err := os.Open("testdata/needs.sh") // who is to run it may be unable to reach it
	if err != nil {
		t.Fatal(err)
	}
	defer script.Close()
	cmd := exec.Command("sh", "-s", "suites")
	cmd.Dir, cmd.Stdin, cmd.SysProcAttr = "/", script, shop.attr()
	cmd.Env = []string{"PYTHON=" + python}
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return string(out)
}

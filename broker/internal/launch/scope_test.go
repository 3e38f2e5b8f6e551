//go:build linux

package launch

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"sbx.example/sbx/broker/internal/program"
)

// hostScript is an sbx-host that a shell plays.
func hostScript(t *testing.T, script string) program.Program {
	t.Helper()
	file := filepath.Join(t.TempDir(), hostProgram)
	if err := os.WriteFile(file, []byte("#!/bin/sh\n"+script), 0o755); err != nil {
		t.Fatal(err)
	}
	p, err := program.Source{Named: []string{file}}.Find(hostProgram)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestScope(t *testing.T) {
	out := filepath.Join(t.TempDir(), "out")
	if err := Scope(hostScript(t, `echo "$# $* $PPID env: $(env | grep -vc -e PWD= -e PATH= -e _=)" >`+out), "/a bus",
		"sbx-one.scope"); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(out)
	pid := strconv.Itoa(os.Getpid())
	if want := "7 group --bus /a bus --unit sbx-one.scope --pid " + pid + " " + pid + " env: 0\n"; err != nil ||
		string(b) != want {
		t.Errorf("it was called with %q (%v), want %q", b, err, want)
	}
	for script, want := range map[string]string{
		"echo why >&2; exit 1": "why",
		"exit 3":               "exit status 3",
		"echo aside >&2":       "",
	} {
		err := Scope(hostScript(t, script), "/b", "u")
		if want == "" && err != nil || want != "" && (err == nil || !strings.HasSuffix(err.Error(), want)) {
			t.Errorf("%s: %v, want %q", script, err, want)
		}
	}
}

func TestDropsForwarded(t *testing.T) {
	for text, want := range map[string]bool{
		"policy of FORWARD: DROP\nwould run: iptables -I":     true,
		"policy of FORWARD: DROP\nthere already: iptables -A": false,
		"policy of FORWARD: ACCEPT\nwould run: iptables -I":   false,
	} {
		got, err := DropsForwarded(hostScript(t, `[ "$*" = "allow-forward --dry-run" ] && echo "`+text+`"`))
		if err != nil || got != want {
			t.Errorf("%q: %v, %v", text, got, err)
		}
	}
	if _, err := DropsForwarded(hostScript(t, "exit 1")); err == nil {
		t.Error("its failure is none")
	}
}

// The program of the test has no sbx-host beside it.
func TestFindHost(t *testing.T) {
	for _, dir := range libexec {
		if _, err := os.Stat(dir + hostProgram); err == nil {
			return // an installed one
		}
	}
	if _, err := FindHost(program.Source{}); !errors.Is(err, program.ErrMissing) ||
		err.Error() != "sbx-host is not installed" {
		t.Errorf("%v", err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	beside := filepath.Join(filepath.Dir(self), hostProgram)
	if err := os.WriteFile(beside, nil, 0o755); err != nil {
		t.Fatal(err)
	}
	defer os.Remove(beside)
	if p, err := FindHost(program.Source{}); err != nil || p.File() != beside {
		t.Errorf("%v, %v", p, err)
	}
}

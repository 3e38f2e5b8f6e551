package selftest

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// swaps is how often each call is tried; a long run has more.
const swaps = 2000

// TestSwappedNames has a program change paths in memory, and directories into links, while it calls what makes and writes names: nothing
// guarded may come of it. Outside it does, which is the control.
func TestSwappedNames(t *testing.T) {
	needSandbox(t)
	m := largeProject(t)
	m.mustBeJudged(t)
	repository := filepath.Join(m.large, "repository")
	if err := os.Mkdir(repository, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := shop.own(repository); err != nil {
		t.Fatal(err)
	}
	run := func(args ...string) string { return m.run(t, repository, args...) }
	fresh := func() {
		run("sh", "-c", "chmod -R u+w . ; rm -rf .git turns aside free source; git init -q . && rm -f .git/hooks/* && mkdir -p free/hooks")
	}
	hooks := func() string {
		list, err := filepath.Glob(filepath.Join(repository, ".git", "hooks", "*"))
		if err != nil {
			t.Fatal(err)
		}
		return strings.Join(list, " ")
	}
	for _, mode := range []string{"static", "dynamic"} {
		fresh()
		config, err := os.ReadFile(filepath.Join(repository, ".git", "config"))
		if err != nil {
			t.Fatal(err)
		}
		said := m.run(t, m.project, shop.sbx, "run", "-q", "--mode", mode, "--prompt", "deny", "--", "sh", "-c", fmt.Sprintf("cd large/repository; exec %s swap %d", m.program, swaps))
		if strings.Contains(said, " 0,") || strings.HasSuffix(strings.TrimSpace(said), " 0") {
			t.Errorf("%s: nothing has succeeded at the free places either, so nothing was tried: %s", mode, said)
		}
		if got := hooks(); got != "" {
			t.Errorf("%s: hooks have come into being: %s (%s)", mode, got, said)
		}
		if after, err := os.ReadFile(filepath.Join(repository, ".git", "config")); err != nil || string(after) != string(config) {
			t.Errorf("%s: the configuration is another one: %v", mode, err)
		}
	}
	for try := 0; hooks() == ""; try++ {
		if try == 20 {
			t.Fatal("the program makes no hook outside either, so it proves nothing")
		}
		fresh()
		run(m.program, "swap", "2001") // ends with a call that makes the file
	}
}

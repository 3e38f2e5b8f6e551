//go:build linux

package selftest

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

// engines are those that find out what is not granted. What a person sees of them is the same.
var engines = [...]string{"gatefs", "notify"}

// TestEngines runs every script about approvals with each engine, which the user's configuration names.
func TestEngines(t *testing.T) {
	t.Parallel()
	needSandbox(t)
	for _, engine := range engines {
		t.Run(engine, func(t *testing.T) {
			work := filepath.Join(shop.dir, "work-"+engine)
			if err := os.Mkdir(work, 0o755); err != nil {
				t.Fatal(err)
			}
			testscript.Run(t, testscript.Params{
				Files:       scripts(t, true),
				WorkdirRoot: work,
				Setup: func(env *testscript.Env) error {
					if err := setup(env); err != nil {
						return err
					}
					env.Setenv("ENGINE", engine)
					dir := filepath.Join(env.WorkDir, "home", ".config", "sbx")
					if err := os.MkdirAll(dir, 0o755); err != nil {
						return err
					}
					if err := os.WriteFile(filepath.Join(dir, "config.toml"), []byte("[sandbox]\ngate = \""+engine+"\"\n"),
						0o644); err != nil {
						return err
					}
					return shop.own(filepath.Dir(filepath.Dir(dir)))
				},
				Cmds:               commands(),
				Condition:          condition,
				RequireUniqueNames: true,
				ContinueOnError:    true,
			})
		})
	}
}

// scripts lists those about approvals, or all others.
func scripts(t *testing.T, approvals bool) []string {
	all, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(all) == 0 {
		t.Fatal("no scripts", err)
	}
	return slices.DeleteFunc(all, func(f string) bool {
		name := strings.TrimSuffix(filepath.Base(f), ".txtar")
		return approvals != (strings.HasPrefix(name, "approve_") || slices.Contains([]string{"question_tty", "gate_day",
			"gate_live", "gate_locks", "gate_repositories", "gate_writes"}, name))
	})
}

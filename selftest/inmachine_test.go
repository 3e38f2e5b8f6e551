//go:build linux

package selftest

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"sbx.example/sbx/selftest/need"
)

// inMachine lists scripts that pass as they are where each program runs in a virtual machine. Most look for the
// program's processes outside, which are in the machine then.
var inMachine = [...]string{"credentials"}

// TestRunInMachine runs scripts again with the backend vm and the kernel that selftest/vm has (make vm): each run boots
// a machine.
func TestRunInMachine(t *testing.T) {
	kernel := os.Getenv(machineKernel)
	if kernel == "" {
		return // no test of make test's, so nothing is missing there
	}
	needSandbox(t)
	need.Tool(t, "qemu-system-x86_64")
	work, list := filepath.Join(shop.dir, "work-machine"), t.TempDir()
	must(t, os.Mkdir(work, 0o755))
	settings := "[vm]\naccel = \"emulation\"\nkernel = \"" + kernel + "\"\n"
	var files []string
	for _, name := range inMachine {
		text, err := os.ReadFile("testdata/" + name + ".txtar")
		must(t, err)
		script := strings.ReplaceAll(string(text), "sbx run ", "sbx run --backend vm ")
		script = strings.Replace(script, "\n[credential.lab]\n", "\n"+settings+"[credential.lab]\n", 1)
		files = append(files, filepath.Join(list, name+".txtar"))
		must(t, os.WriteFile(files[len(files)-1], []byte(script), 0o644))
	}
	testscript.Run(t, testscript.Params{
		Files:       files,
		WorkdirRoot: work,
		Setup: func(env *testscript.Env) error {
			dir := filepath.Join(env.WorkDir, "home/.config/sbx")
			if err := os.MkdirAll(dir, 0o755); err != nil {
				return err
			}
			if err := os.WriteFile(filepath.Join(dir, "config.toml"), []byte(settings), 0o644); err != nil {
				return err
			}
			return setup(env)
		},
		Cmds:               commands(),
		Condition:          condition,
		RequireUniqueNames: true,
		ContinueOnError:    true,
	})
}

//go:build linux

package selftest

import (
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"sbx.example/sbx/selftest/need"
)

// TestRun runs the scripts, each in a home of its own; those about approvals are TestEngines'. Commands that scripts
// have beyond testscript's are in commands_test.go; "exec" is not to be used, because it would run as the caller.
func TestRun(t *testing.T) {
	t.Parallel()
	needSandbox(t)
	work := filepath.Join(shop.dir, "work")
	if err := os.Mkdir(work, 0o755); err != nil {
		t.Fatal(err)
	}
	testscript.Run(t, testscript.Params{
		Files:              scripts(t, false),
		WorkdirRoot:        work,
		Setup:              setup,
		Cmds:               commands(),
		Condition:          condition,
		RequireUniqueNames: true,
		ContinueOnError:    true, // one run shows all that is wrong
	})
}

// condition knows what scripts can ask beyond testscript's own words: [passwd], whether the password
// file gives the ordinary user a home of its own, [journald], whether that logger runs, [root], whether the tests may
// mount, [faststart], whether sbx was built with that, [thorough], whether tests take their time (need.Thorough), and
// those of lacksInHelper, which hold here.
func condition(name string) (bool, error) {
	if plain() && (name == "faststart" || name == "ahead") {
		return false, nil
	}
	if name == "faststart" {
		return true, nil
	}
	for _, c := range lacksInHelper {
		if c.name == name {
			return true, nil
		}
	}
	if name == "root" { // that may mount
		return os.Getuid() == 0 && exec.Command("unshare", "--mount", "true").Run() == nil, nil
	}
	if name == "cores" { // the kernel takes a limit on core dumps that keeps its handler out
		var r syscall.Rlimit
		return syscall.Getrlimit(syscall.RLIMIT_CORE, &r) == nil && r.Max > 0, nil
	}
	if name == "thorough" {
		return need.Thorough(), nil
	}
	if name == "journald" {
		_, err := os.Stat("/run/systemd/journal/socket")
		return err == nil, nil
	}
	if name != "passwd" {
		return false, fmt.Errorf("unknown condition %s", name)
	}
	_, err := user.LookupId(strconv.Itoa(shop.uid))
	return err == nil, nil
}

// setup makes the script's directory a home with a project in it, owned by the ordinary user.
func setup(env *testscript.Env) error {
	if err := os.Chmod(env.WorkDir, 0o755); err != nil {
		return err
	}
	home := filepath.Join(env.WorkDir, "home")
	project := filepath.Join(home, "project")
	if err := os.MkdirAll(project, 0o755); err != nil {
		return err
	}
	if err := shop.own(env.WorkDir); err != nil {
		return err
	}
	env.Cd = project
	env.Values[testOf{}] = env.T()
	env.Setenv("HOME", home)
	env.Setenv("PROBE", shop.probe)
	env.Setenv("SOURCE", shop.source)
	return nil
}

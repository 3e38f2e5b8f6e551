package selftest

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestControlGroups runs testdata/cgroup.sh, which can also be run by itself in a virtual machine. Where the ordinary user
// has no delegated group, which no installation of packages changes, it is left out.
func TestControlGroups(t *testing.T) {
	needSandbox(t)
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "sh", "testdata/cgroup.sh", shop.sbx)
	cmd.SysProcAttr = shop.attr()
	cmd.WaitDelay = 5 * time.Second
	cmd.Env = shop.env(cgroupHome(t), shop.dir)
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if errors.As(err, &exit) && exit.ExitCode() == 3 {
		t.Skip(strings.SplitN(string(out), "\n", 2)[0])
	}
	if err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	t.Logf("%s", out)
}

// cgroupHome makes a home of the ordinary user's where homes are.
func cgroupHome(t *testing.T) string {
	dir := filepath.Join(shop.dir, "cgroup-home")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := shop.own(dir); err != nil {
		t.Fatal(err)
	}
	return dir
}

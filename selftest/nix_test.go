//go:build linux

package selftest

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"sbx.example/sbx/selftest/need"
)

// TestNixDaemon runs testdata/nix.sh with a daemon of its own, in a mount namespace with an empty /nix.
func TestNixDaemon(t *testing.T) {
	t.Parallel()
	needSandbox(t)
	need.Root(t, "to run a daemon with a /nix of its own")
	need.Tool(t, "nix-daemon", "unshare", "setpriv", "busybox")
	home := filepath.Join(shop.dir, "nix-home")
	if err := os.MkdirAll(home, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := shop.own(home); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "unshare", "-m", "sh", filepath.Join(shop.source, "selftest/testdata/nix.sh"),
		shop.sbx, strconv.Itoa(shop.uid), home)
	cmd.WaitDelay = 5 * time.Second
	cmd.Env = append(shop.env(home, shop.dir), "HOME=/root")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	t.Logf("%s", out)
}

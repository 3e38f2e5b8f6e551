//go:build linux

package selftest

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"sbx.example/sbx/selftest/need"
)

// inPodman prepares what podman needs of a machine, where nobody else sees it: mounts that it can share, and control
// groups of one version, since crun refuses a hybrid.
const inPodman = `umount /sys/fs/cgroup/unified 2>/dev/null
mount --make-rshared / && exec sh -c "$@"`

// TestInPodman runs testdata/podman.sh as an ordinary user with a name and subordinate ids. Control groups are left
// alone, because few machines that run tests delegate any.
func TestInPodman(t *testing.T) {
	t.Parallel()
	needSandbox(t)
	need.Root(t, "to give the ordinary user a name and subordinate ids")
	need.Tool(t, "podman", "crun", "conmon", "newuidmap", "unshare", "setpriv", "node", "npm", "git")
	_, err := os.Stat("/usr/share/containers/seccomp.json")
	need.Fact(t, err == nil, "podman's own seccomp profile: %v", err)
	abi, _, _ := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, unix.LANDLOCK_CREATE_RULESET_VERSION)
	need.Fact(t, int(abi) >= 2, "Landlock with ABI 2")
	home, err := os.MkdirTemp(shop.dir, "podman-")
	must(t, err)
	etc, work := filepath.Join(home, "etc"), filepath.Join(home, "work")
	for _, dir := range []string{etc, work} {
		must(t, os.Mkdir(dir, 0o755))
	}
	// What notes that a container has ended takes no longer path than 50 bytes, and podman waits 20 seconds for it.
	run, err := os.MkdirTemp("/tmp", "run-")
	must(t, err)
	defer os.RemoveAll(run)
	must(t, shop.own(run))
	uid := strconv.Itoa(shop.uid)
	for name, text := range map[string]string{"passwd": "root:x:0:0:root:/root:/bin/sh\napp:x:" + uid + ":" + uid + "::" +
		home + ":/bin/sh\n", "subuid": "app:200000:65536\n", "subgid": "app:200000:65536\n"} {
		must(t, os.WriteFile(filepath.Join(etc, name), []byte(text), 0o644))
	}
	must(t, os.Chmod(home, 0o755))
	must(t, shop.own(home))
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "unshare", "-m", "sh", "-c", inPodman, "podman", etcScript, "etc", etc, uid, "sh",
		filepath.Join(shop.source, "selftest/testdata/podman.sh"), shop.sbx, work, "--cgroups=disabled")
	cmd.Env = append(shop.env(home, home), "XDG_RUNTIME_DIR="+run)
	cmd.WaitDelay = 5 * time.Second
	out, err := cmd.CombinedOutput()
	endPause(t, run)
	if err != nil || !strings.Contains(string(out), "a sandbox inside narrows") {
		t.Fatalf("%v\n%s", err, out)
	}
	t.Logf("%s", out)
}

// endPause ends the process that keeps podman's namespaces.
func endPause(t *testing.T, run string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(run, "libpod/tmp/pause.pid"))
	must(t, err)
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	must(t, err)
	must(t, syscall.Kill(pid, syscall.SIGKILL))
}

//go:build linux

package checks

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"sbx.example/sbx/selftest/need"
)

// naked starts the command with no sandbox at all: what an attacker wins there is what the checks must see.
const naked = `#!/bin/sh
while [ "$1" != "--" ]; do shift; done
shift
exec "$@"
`

// contained is a sandbox made with another tool: own namespaces, hidden home, no filter.
const contained = `#!/bin/sh
set -- "$@"
args=""
while [ "$1" != "--" ]; do
  [ "$1" = "--ro" ] && args="$args --ro-bind $2 $2"
  shift
done
shift
exec bwrap --unshare-all --die-with-parent --clearenv --setenv PATH /usr/bin:/bin --ro-bind /usr /usr --symlink usr/bin /bin --symlink usr/lib /lib --symlink usr/lib64 /lib64 \
  --proc /proc --dev /dev --tmpfs /tmp $args --bind "$PWD" "$PWD" --ro-bind-try "$PWD/.git" "$PWD/.git" --chdir "$PWD" "$@"
`

// probeDir is where another user can run the probe, which is built once for all tests.
var probeDir string

var built = sync.OnceValues(func() (probe string, err error) {
	if probeDir, err = os.MkdirTemp("", "checks"); err != nil {
		return "", err
	}
	probe = filepath.Join(probeDir, "probe")
	cmd := exec.Command("go", "build", "-buildvcs=false", "-ldflags=-w", "-o", probe, "../probe")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	out, err := cmd.CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("building the probe: %w\n%s", err, out)
	}
	return probe, os.Chmod(probeDir, 0o755)
})

func TestMain(m *testing.M) {
	status := m.Run()
	if probeDir != "" {
		os.RemoveAll(probeDir)
	}
	os.Exit(status)
}

func buildProbe(t *testing.T) string {
	t.Helper()
	if p := os.Getenv("SBX_TEST_PROBE"); p != "" {
		return p
	}
	p, err := built()
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func publicDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "checks")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	return dir
}

// asOrdinaryUser runs the named test again without root; true means that the caller is that second run.
// An ordinary user needs the second run, too: names in the lab tell processes apart, not tests.
func asOrdinaryUser(t *testing.T) bool {
	t.Helper()
	if os.Getenv("SBX_TEST_PROBE") != "" {
		return true
	}
	const nobody = 65534
	probe := buildProbe(t)
	cmd := exec.Command("/proc/self/exe", "-test.run=^"+t.Name()+"$", "-test.v")
	cmd.Env = append(os.Environ(), "SBX_TEST_PROBE="+probe, "HOME=/nonexistent", "TMPDIR=/tmp")
	cmd.Dir = "/"
	if os.Geteuid() == 0 {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	}
	out, err := cmd.CombinedOutput()
	t.Logf("as an ordinary user:\n%s", out)
	if err != nil {
		t.Fatalf("as an ordinary user: %v", err)
	}
	need.Fact(t, !strings.Contains(string(out), "--- SKIP"), "what an ordinary user lacks, see above")
	return false
}

func runWith(t *testing.T, script string) map[string]Result {
	t.Helper()
	sbx := filepath.Join(publicDir(t), "sbx")
	if err := os.WriteFile(sbx, []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	begin := used()
	heavy := map[string]bool{"RS-02": true, "RS-04-inodes": true, "RS-13": true}
	results, err := Run(context.Background(), Runner{Sbx: sbx, Probe: buildProbe(t)},
		func(c Check) bool { return !heavy[c.ID] })
	if err != nil {
		t.Fatal(err)
	}
	if d := used() - begin; d > time.Minute {
		t.Errorf("took %v of the processors' time", d)
	}
	byID := make(map[string]Result)
	for _, r := range results {
		byID[r.ID] = r
		t.Logf("%-10s %-6s %-11s got %.150s | %.120s", r.ID, r.Status, r.Control, r.Got, r.Missing)
	}
	if left, _ := filepath.Glob("/var/tmp/sbx-selftest-" + strconv.Itoa(os.Getpid()) + "-*"); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
	return byID
}

// used is the processors' time that this process and its children have taken. A clock would tell what else runs here.
func used() time.Duration {
	var total time.Duration
	for _, who := range []int{syscall.RUSAGE_SELF, syscall.RUSAGE_CHILDREN} {
		var u syscall.Rusage
		if err := syscall.Getrusage(who, &u); err == nil {
			total += time.Duration(u.Utime.Nano() + u.Stime.Nano())
		}
	}
	return total
}

// Without any sandbox the acts succeed: the probe itself is able to win, and no check calls that a pass.
func TestNakedRunFails(t *testing.T) {
	t.Parallel()
	if !asOrdinaryUser(t) {
		return
	}
	// What the kernel refuses to every ordinary user, sandbox or not.
	refused := map[string]bool{"FR-13": true, "FR-16": true, "FR-18": true, "FR-23": true, "FR-32": true, "FR-34": true,
		"FR-36": true, "FW-04": true, "FW-05": true, "FW-06": true, "FW-09": true, "FW-17": true, "FW-19": true,
		"NS-03": true, "NS-04": true, "NS-05": true, "NS-06": true, "NS-08": true, "NS-12": true, "NS-13": true,
		"KI-05": true, "KI-06": true, "KI-07": true, "KI-10": true, "NT-01": true, "NT-02": true, "NT-20": true,
		"BP-01": true, "RS-09": true, "RS-10": true, "RS-11": true, "RS-12": true, "RS-04": true}
	for id, r := range runWith(t, naked) {
		if r.Status == Pass && !refused[id] {
			t.Errorf("%s passes without a sandbox: got %s", id, r.Got)
		}
		if r.Status == Broken {
			t.Errorf("%s is broken: %s", id, r.Missing)
		}
	}
}

// With another tool's sandbox the checks tell apart what it stops and what it lets through.
func TestContainedRun(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("bwrap"); err != nil {
		need.Fact(t, false, "bwrap")
	}
	if !asOrdinaryUser(t) {
		return
	}
	byID := runWith(t, contained)
	if strings.Contains(byID["FR-01"].Missing, "namespace") {
		need.Fact(t, false, "unprivileged user namespaces")
	}
	for _, id := range []string{"FR-01", "FR-02", "FR-03", "FR-06", "FR-07", "FR-08", "FR-14", "FR-15", "FR-17", "FR-20",
		"FR-21", "FR-22", "FR-28", "FR-30", "FR-31", "FR-33", "FR-38", "FW-01", "FW-02", "FW-03", "FW-10", "FW-11",
		"FW-16", "FW-18", "NS-07", "NS-09", "NS-15", "LC-02", "NT-01", "NT-03", "NT-05", "NT-06", "NT-07", "NT-21", "NT-23",
		"BP-01"} {
		if r := byID[id]; r.Status != Pass || r.Control != Effective {
			t.Errorf("%s: %s, control %s: got %s, want a pass; %s", id, r.Status, r.Control, r.Got, r.Missing)
		}
	}
	// FR-04 and FR-05: the directory that is open at the start comes through.
	for _, id := range []string{"FR-04", "FR-05", "FR-09", "FR-11", "FW-08", "NS-01", "NS-02", "NS-03", "NS-14", "NT-04",
		"NT-09", "NT-10", "NT-24", "KI-01", "KI-03", "KI-04", "TT-01", "FW-13"} {
		if r := byID[id]; r.Status != Fail {
			t.Errorf("%s: %s: got %s, want a fail: this sandbox has no filter and closes no descriptors", id, r.Status, r.Got)
		}
	}
}

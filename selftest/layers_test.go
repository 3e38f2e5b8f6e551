//go:build linux

package selftest

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"sbx.example/sbx/selftest/checks"
	"sbx.example/sbx/selftest/need"
)

// layerCase is one build of the sandbox with layers missing, and what must be noticed then.
type layerCase struct {
	off     string // layers of --test-off; empty: none
	profile string // empty: moderate
	fail    string // the checks that turn to fail, in the order of the report; no other may
	skip    string // the checks that refuse to act, since they would act upon the host
	why     string
}

func layerCases() []layerCase {
	outside := "FR-21 FR-22 FW-01 FW-02 FW-16 VM-02 NIX-07"
	return []layerCase{
		{why: "nothing is off"},
		{off: "seccomp", fail: "FR-09 FR-10 FR-11 FR-12 FR-29 FR-35 NS-02 NS-03 NS-05 NS-14 DB-01 KI-01 KI-02 KI-03 " +
			"KI-04 KI-09 TT-01 TT-02 TT-03 NT-09 NT-10 NT-24 CT-NT-09 CT-NT-10 CT-NT-24 NX-02 VM-NT-09 VM-NT-10 " +
			"VM-NT-24 ON-05 ON-08",
			why: "set-id bits (FW-08) are refused by the guard, too; mounts and chroot outside of a new user namespace by " +
				"the lack of capabilities; the limit on core dumps (FR-35) can be lowered"},
		{off: "netns", fail: "NT-21", skip: "NT-01 NT-02 NT-20",
			why: "Landlock's scope is the second line for abstract sockets (NT-03)"},
		{off: "netns,landlock", fail: "NT-03 NT-21 CT-NT-03 VM-NT-03", skip: "NT-01 NT-02 NT-20", why: "both lines are gone"},
		{off: "ipcns", fail: "FW-18-shm"},
		{off: "env", fail: "FR-19 NT-06 NT-07 NT-08"},
		{off: "rlimit", fail: "FR-35"},
		{off: "landlock", why: "Landlock is only ever the second line: the mounts, the namespaces and the filter stand " +
			"without it"},
		{off: "readonly", fail: "FR-21 FW-16",
			why: "Landlock is the second line: it is not told of the mounts that became writable; truncation alone it is not " +
				"asked about (SECURITY.md)"},
		{off: "readonly,landlock", fail: outside, why: "both lines are gone"},
		{profile: "permissive", fail: "FR-01 FR-02 FR-03 FR-06 FR-08 FR-14 FR-17 FR-22 NS-10 FR-30 FR-31 FR-33 VM-01",
			why: "the profile grants the home, so that the plain file in it can be read; what is hidden of it, and only " +
				"that, must not"},
		{off: "secrets", profile: "permissive",
			fail: "FR-01 FR-02 FR-03 FR-06 FR-08 FR-14 FR-17 FR-22 NS-10 FR-30 FR-31 FR-33 FR-38 FW-20 NT-04 NT-05 " +
				"NT-07-sock BP-01 CT-NT-04 CT-NT-05 CT-NT-07-sock VM-NT-04 VM-NT-05 VM-NT-07-sock VM-01 VM-04 NIX-01 GR-04 GR-06",
			why: "the session socket can be reached, too, and only says that it takes no orders from there; a private key " +
				"has its name against it besides"},
		{off: "secrets,guard", profile: "permissive",
			fail: "FR-01 FR-02 FR-03 FR-04 FR-06 FR-08 FR-14 FR-17 FR-22 NS-10 FR-27 FR-28 FR-30 FR-31 FR-33 FR-38 FW-20 " +
				"FW-10 FW-10-cover FW-11 FW-12 FW-13 FW-13-git NT-23 NT-04 NT-05 NT-07-sock BP-01 CT-NT-04 CT-NT-05 " +
				"CT-NT-07-sock NX-01 VM-NT-04 VM-NT-05 VM-NT-07-sock VM-01 VM-04 NIX-01 GR-04 GR-06",
			why: "both lines are gone"},
		{off: "guard", fail: "FR-27 FW-10 FW-10-cover FW-11 FW-12 FW-13 FW-13-git NT-23"},
	}
}

// slow says which checks take a second or more and need no layer that can be switched off.
func slow(id string) bool {
	return slices.Contains([]string{"FR-15", "FR-32", "NS-15", "LC-02", "RS-04-inodes", "RS-10", "RS-12", "GR-02",
		"GR-03", "GR-05"}, id)
}

// hostFacts are what a host may lack: the checks that need them may be skipped, but nothing else may.
func hostFacts() []string {
	return []string{"cgroup", "containers", "coredump", "device", "dmesg", "ia32", "io_uring", "keyring", "netlink",
		"root", "userfaultfd", "userns", "vsock", "x32"}
}

// layerJob is what the process that performs the checks as the ordinary user is told.
type layerJob struct {
	Runner checks.Runner
	Out    string
	Leave  []string // checks that are not performed
}

// TestLayersProcess is that process; there is nothing to do in an ordinary run.
func TestLayersProcess(t *testing.T) {
	text := os.Getenv("SBX_TEST_LAYERS")
	if text == "" {
		return
	}
	var job layerJob
	if err := json.Unmarshal([]byte(text), &job); err != nil {
		t.Fatal(err)
	}
	results, err := checks.Run(context.Background(), job.Runner, func(c checks.Check) bool {
		return !slow(c.ID) && !slices.Contains(job.Leave, c.ID)
	})
	if err != nil {
		t.Fatal(err)
	}
	b, err := json.Marshal(results)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(job.Out, b, 0o644); err != nil {
		t.Fatal(err)
	}
}

// TestLayers switches layers off one by one. The checks that must notice are named: a check that stays
// green without its layer shows nothing, and one that turns red for a foreign layer names the wrong one.
func TestLayers(t *testing.T) {
	t.Parallel()
	needSandbox(t)
	dir := layersDir(t, "layers")
	for i, c := range layerCases() {
		t.Run(strings.TrimSpace(c.profile+" off="+strings.ReplaceAll(c.off, ",", "+")), func(t *testing.T) {
			if c.profile == "" { // permissive grants the other labs, too, and they must not change while it is mounted
				t.Parallel()
			}
			results := runLayers(t, dir, strconv.Itoa(i), c, leftOut(i, c))
			if got, want := withStatus(results, checks.Fail), c.fail; got != want {
				t.Errorf("failed: %s\nwant:   %s\n(%s)\n%s", got, want, c.why, describe(results, checks.Fail))
			}
			if got := withStatus(results, checks.Broken); got != "" {
				t.Errorf("broken: %s\n%s", got, describe(results, checks.Broken))
			}
			var skipped []string
			for _, r := range results {
				fact, _, _ := strings.Cut(r.Missing, ":")
				if r.Status == checks.Skip && !slices.Contains(hostFacts(), fact) {
					skipped = append(skipped, r.ID)
				}
			}
			if got := strings.Join(skipped, " "); got != c.skip {
				t.Errorf("skipped: %s\nwant:    %s\n%s", got, c.skip, describe(results, checks.Skip))
			}
		})
	}
}

// leftOut are the checks that a case leaves out without SBX_THOROUGH=1: with all layers on each is performed, and with
// one off those that must notice, and of the others every fourth, each time another.
func leftOut(number int, c layerCase) (ids []string) {
	if need.Thorough() || c.off == "" && c.profile == "" {
		return nil
	}
	named := strings.Fields(c.fail + " " + c.skip)
	for i, check := range checks.All() {
		if (i+number)%4 != 0 && !slices.Contains(named, check.ID) {
			ids = append(ids, check.ID)
		}
	}
	return ids
}

// TestReleaseHasNoSwitch makes sure that the layers cannot be switched off where it counts.
func TestReleaseHasNoSwitch(t *testing.T) {
	t.Parallel()
	needSandbox(t)
	for _, args := range [][]string{{"--test-off=seccomp"}, {"--test-off", "landlock"}} {
		out, err := asUser(shop.dir, nil, append([]string{shop.sbx, "run"}, append(args, "--", "true")...)...)
		if err == nil || !strings.Contains(out, "unknown option") {
			t.Errorf("run %v: got %v, %q, want an unknown option", args, err, out)
		}
	}
	out, err := asUser(shop.dir, nil, shop.sbx, "run", "--help")
	if err != nil || strings.Contains(out, "test-off") {
		t.Errorf("run --help: %v, or it names test-off:\n%s", err, out)
	}
}

// uncontrolled are the checks that may pass without an effective control, with the reason.
// For those with a fact, the reason holds only where the host does not offer it.
func uncontrolled() map[string]string {
	return map[string]string{
		"FR-32": "success is acceptable",
		"FW-17": "needs CAP_MKNOD of the host",
		"FW-19": "success is acceptable",
		"KI-07": "no layer of sbx is involved",
		"RS-09": "only a notifying gate can cause it",
		"RS-11": "shows that nothing breaks",
		"FR-12": "ia32: ", "FR-11": "io_uring: ", "FR-13": "x32: ", "FR-35": "coredump: ", "FR-36": "device: ",
		"FR-37": "keyring: ", "KI-03": "keyring: ",
		"KI-04": "userfaultfd: ", "KI-06": "dmesg: ", "KI-10": "root: ", "NT-09": "vsock: ", "NT-10": "netlink: ",
		"NS-03": "clone3: ",
	}
}

// TestSelftestIsGreen runs the command that users run, and insists on its controls.
func TestSelftestIsGreen(t *testing.T) {
	t.Parallel()
	needSandbox(t)
	bin := filepath.Join(shop.dir, "release")
	if err := os.MkdirAll(bin, 0o755); err != nil {
		t.Fatal(err)
	}
	for from, to := range map[string]string{shop.sbx: "sbx", shop.probe: "sbx-probe"} {
		if err := os.Link(from, filepath.Join(bin, to)); err != nil {
			t.Fatal(err)
		}
	}
	out, err := asUser(shop.dir, nil, filepath.Join(bin, "sbx"), "selftest", "--json")
	var report checks.Report
	if e := json.Unmarshal([]byte(out), &report); e != nil || err != nil {
		t.Fatalf("sbx selftest --json: %v, %v\n%s", err, e, out)
	}
	if s := report.Summary; s.Fail != 0 || s.Broken != 0 || s.Pass+s.Skip != len(checks.All()) || s.Pass < 100 {
		t.Errorf("got %+v of %d checks\n%s%s", s, len(checks.All()), describe(report.Checks, checks.Fail),
			describe(report.Checks, checks.Broken))
	}
	for _, r := range report.Checks {
		reason, known := uncontrolled()[r.ID]
		switch {
		case r.Status != checks.Pass || r.Control == checks.Effective:
		case r.Control != checks.NoControl:
			t.Errorf("%s passed with a control that is %s", r.ID, r.Control)
		case !known || !strings.Contains(r.Missing, reason):
			t.Errorf("%s passed without a control: %q, want %q", r.ID, r.Missing, reason)
		}
	}
}

// layersDir builds in a folder of that name what the ordinary user runs: an sbx whose layers can be switched off, the
// probe, and this test.
func layersDir(t *testing.T, name string) string {
	t.Helper()
	dir := filepath.Join(shop.dir, name)
	if err := os.MkdirAll(filepath.Join(dir, "out"), 0o755); err != nil {
		t.Fatal(err)
	}
	sbx, err := shop.program("sbx-layers", "./broker", "-tags=sbx_testhooks", "-ldflags=-w -E=sbx_start")
	must(t, err)
	must(t, os.Link(sbx, filepath.Join(dir, "sbx")))
	self, err := os.ReadFile("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	// The test binary is in a folder that only its builder may look into.
	if err := os.WriteFile(filepath.Join(dir, "self"), self, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := shop.own(filepath.Join(dir, "out")); err != nil {
		t.Fatal(err)
	}
	return dir
}

// runLayers keeps the lab where homes are: Landlock grants what lies below a granted directory, and
// /var/tmp, where labs are otherwise, is granted to every sandbox.
func runLayers(t *testing.T, dir, number string, c layerCase, leave []string) []checks.Result {
	t.Helper()
	profile := c.profile
	if profile == "" {
		profile = "moderate"
	}
	// permissive has a network, and the checks send packets
	base := []string{"--static", "--profile", profile, "--prompt", "deny", "--net", "none"}
	if c.off != "" {
		base = append(base, "--test-off="+c.off)
	}
	// Short names: the paths of the lab's sockets must stay below 108 bytes.
	lab := filepath.Join(dir, "out", number)
	job := layerJob{Runner: checks.Runner{Sbx: filepath.Join(dir, "sbx"), Probe: shop.probe, Lab: lab, Base: base},
		Out: lab + ".json", Leave: leave}
	text, err := json.Marshal(job)
	if err != nil {
		t.Fatal(err)
	}
	out, err := asUser(dir, []string{"SBX_TEST_LAYERS=" + string(text)}, filepath.Join(dir, "self"),
		"-test.run=^TestLayersProcess$")
	if err != nil {
		t.Fatalf("performing the checks: %v\n%s", err, out)
	}
	b, err := os.ReadFile(job.Out)
	if err != nil {
		t.Fatal(err)
	}
	var results []checks.Result
	if err := json.Unmarshal(b, &results); err != nil {
		t.Fatal(err)
	}
	return results
}

// asUser runs a command as the ordinary user and returns what it printed; a command that hangs is ended.
func asUser(dir string, env []string, argv ...string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Dir, cmd.SysProcAttr, cmd.WaitDelay = dir, shop.attr(), 30*time.Second
	cmd.Env = append(shop.env(dir, dir), env...)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err := cmd.Run()
	return out.String(), err
}

func withStatus(results []checks.Result, status string) string {
	var ids []string
	for _, r := range results {
		if r.Status == status {
			ids = append(ids, r.ID)
		}
	}
	return strings.Join(ids, " ")
}

func describe(results []checks.Result, status string) string {
	var b strings.Builder
	for _, r := range results {
		if r.Status == status {
			fmt.Fprintf(&b, "%s: expected %s, got %s %s\n", r.ID, r.Expected, r.Got, r.Missing)
		}
	}
	return b.String()
}

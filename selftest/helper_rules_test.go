//go:build linux

package selftest

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// rules are what sbx-helper promises its host about a hostile caller (helper/README.md, SECURITY.md), and what tries to
// break each: a test, an attempt of the hostile caller's (by the beginning of its name), a script, or a state of
// helper.toml. The lines of the permission table itself, operations and fields, are held against the attempts by
// TestHostileTable.
var rules = [...]struct{ rule, proof string }{
	{"caller: no argument, another verb, a name of control bytes",
		"attempt no arguments; attempt no verb; attempt another verb; attempt odd name"},
	{"caller: descriptors 0 to 2 are open, every other is closed",
		"attempt closed descriptors; attempt no descriptor at all; attempt 200 descriptors; attempt no socket"},
	{"caller: the environment is dropped whole, Go's settings with it, and nothing is said",
		"attempt environment; attempt 1.2 MB of environment; attempt settings of Go's say; attempt settings of Go's and a " +
			"bad plan; attempt settings of a loader"},
	{"caller: umask, working directory, signals, timers",
		"attempt umask; attempt no working directory; attempt ignored signals; attempt signal alarm"},
	{"caller: small limits end it before anything is changed",
		"attempt few descriptors; attempt no file may grow; attempt no processes; attempt stack; attempt limit -n 3; " +
			"attempt limit -t 1; attempt limit -v; attempt limit -s; attempt limit -d; attempt limit -l"},
	{"caller: who asks is who made the socket; sudo's word must agree; root is served by nobody",
		"test TestHelperThroughSudo; attempt ids: root; attempt ids: another user; attempt ids: nobody at all"},
	{"caller: nobody stops, kills, traces or reads it",
		"attempt a hand on it; attempt stopped and continued; attempt signal killed; attempt signal terminated"},
	{"caller: no core, no traceback", "attempt core; attempt signal segmentation fault"},
	{"receive: one request, at most 256 KiB, three descriptors, in time",
		"attempt request: too much; attempt request: 4 GiB; attempt request: three too many; attempt request: nothing in " +
			"time; attempt request: a second one; attempt request: short header; attempt request: half a plan; attempt " +
			"request: descriptor with the plan"},
	{"receive: one spelling of a plan",
		"attempt plan: trailing; attempt plan: truncated; attempt plan: noise; attempt plan: true is 2; attempt request: " +
			"version; attempt plan: a list longer; attempt plan: as JSON; file broker/plan/plan_test.go func " +
			"TestPackOneSpelling; file broker/plan/plan_test.go func FuzzUnpack"},
	{"permitted: the default is refusal, and each line has its plan", "test TestHostileTable; test TestHostileHelper"},
	{"permitted: what the administrator allows, read by descriptor from a file of root's",
		"test TestHelperOrgFile; org owner; org group-may-write; org link; org folder-link; org folder-of-the-caller; org " +
			"unknown-key; org fifo"},
	{"reduce: the caller's authority over files, and no file before",
		"test TestHelperOrder; attempt bind of ; attempt layer of ; attempt bind on a file of ; attempt race of a link"},
	{"stage: nothing below a mount comes to light, nothing is mounted on the host's places",
		"attempt hole: a mask; attempt hole: over /dev by a link of proc's; attempt hole: over /dev by a link of the " +
			"caller's; attempt hole: a layer; attempt operation: through a link"},
	{"stage: a rename meanwhile leads no mount elsewhere",
		"file selftest/helper_races_test.go func raceSwap; attempt race of a link"},
	{"stage: nothing is opened for the caller, no layer is mounted, and only ordinary file systems are bound",
		"attempt field: a file that is opened anew; attempt field: the null device; attempt operation: overlay of sysfs; " +
			"attempt strange: /proc; attempt control: sysfs"},
	{"stage: nobody who holds a capability can be stopped, and a deadline holds",
		"file selftest/helper_races_test.go func raceStop; file selftest/helper_races_test.go func stoppedCaller; test " +
			"TestHelperOrder; file shared/stage/direct_test.go func TestAwaitReleaseInterrupted"},
	{"what a caller uses up is the caller's",
		"file selftest/helper_races_test.go func manyHelpers; file selftest/helper_races_test.go func overLimit; " +
			"script network_veth_many one more; test TestHelperOrder; " +
			"org no-byte; org negative-bytes; org one-byte"},
	{"what others have mounted keeps nobody from a sandbox", "org mount-without-source; org many-mounts"},
	{"every call made with privilege has its row", "test TestHelperCallsHaveRows"},
	{"stage: a file system of the caller's can hold it up, not help it",
		"file selftest/helper_around_test.go func startBlocked; attempt operation: fuse; " +
			"attempt operation: writable overlay"},
	{"leave: ids, capabilities, bounding set, securebits, read back; then the filter",
		"test TestHelperOrder; attempt control: base"},
	{"after leave: what process 1 is to do then is not looked into, and gives nothing back",
		"attempt tail: empty; attempt tail: zeros; attempt tail: noise; attempt tail: a directory; attempt tail: a path; " +
			"attempt tail: takes everything back"},
	{"nothing is left, whenever whoever is killed", "test TestHelperKilledAtEveryStep; script network_veth_killed kill"},
	{"net: names and addresses are the helper's, the namespace the caller's own",
		"attempt net: no namespace; attempt net: a namespace of users; attempt net: a namespace of mounts; attempt net: " +
			"the host's own network; attempt net: a plan; script network_veth setcap"},
	{"net: what leaves has a port that the kernel draws, and no address is taken to which a route leads",
		"script network_veth low given; script network_veth routed"},
	{"group: off unless the file says so; the caller names nothing; nobody but the parent of the caller's uid is " +
		"moved; the ceilings stay root's; nothing is left",
		"org groups-unnamed; org groups-of-others; org groups-ceiling; org groups-no-leader; org groups-of-root; org " +
			"groups-ceilings; attempt group: "},
	{"a caller in namespaces, a root directory or an /etc of their own gains nothing",
		"script helper_namespaces root of a user namespace; script helper_namespaces the same with an /etc of their own; " +
			"script helper_namespaces in a root directory of their own"},
	{"installed in another way it is not used",
		"script helper/states THROUGH_HELPER=4755+foreign; script helper/states THROUGH_HELPER=4777; script helper/states " +
			"nosuid; script helper/states --no-suid"},
}

// TestHelperRules: each promise names what tries to break it, and that is there.
func TestHelperRules(t *testing.T) {
	var names []string
	for _, a := range append(attempts("/root", "/nonexistent"), holes("/nonexistent")...) {
		names = append(names, a.name)
	}
	read := func(file string) string {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	tests := ""
	files, err := filepath.Glob("*_test.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		tests += read(f)
	}
	begins := func(what string) bool {
		for _, n := range names {
			if strings.HasPrefix(n, what) {
				return true
			}
		}
		return false
	}
	for _, r := range rules {
		for _, proof := range strings.Split(r.proof, "; ") {
			kind, what, _ := strings.Cut(proof, " ")
			ok := false
			switch kind {
			case "test":
				ok = strings.Contains(tests, "\nfunc "+what+"(t *testing.T) {")
			case "attempt":
				ok = begins(what)
			case "org":
				for _, c := range orgCases() {
					ok = ok || c.name == what
				}
			case "file":
				file, text, _ := strings.Cut(what, " ")
				ok = strings.Contains(read("../"+file), text+"(")
			case "script":
				file, text, _ := strings.Cut(what, " ")
				ok = strings.Contains(read("testdata/"+file+".txtar"), text)
			}
			if !ok {
				t.Errorf("%s: there is no %s", r.rule, proof)
			}
		}
	}
	// Every key of helper.toml lets through and refuses in a test, and stands in the manual and the example.
	keys := regexp.MustCompile(`(?m)^\t\tcase "([a-z_]+)":$`).FindAllStringSubmatch(read("../helper/limits.go"), -1)
	if len(keys) < 8 {
		t.Fatalf("the keys of helper.toml are not where they were: %v", keys)
	}
	all := ""
	for _, c := range orgCases() {
		all += c.text
	}
	for _, k := range keys {
		for where, text := range map[string]string{"orgCases": all, "helper/README.md": read("../helper/README.md"),
			"packaging/examples/helper.toml": read("../packaging/examples/helper.toml")} {
			if !strings.Contains(text, k[1]+" =") {
				t.Errorf("%s is not in %s", k[1], where)
			}
		}
	}
}

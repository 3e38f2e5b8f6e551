package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// most is what sbx-helper may hold: to take more in is a decision.
const most = 2700

// none are the files of shared of which nothing may run with privilege.
var none = [...]string{"plan/plan.go", "plan/json.go", "plan/text.go", "plan/validate_user.go", "plan/validate_process.go", "stage/finish.go", "stage/tail_unsafe.go", "stage/attach.go", "stage/userns.go", "stage/sendmsg_unsafe.go", "stage/fuse.go", "stage/init_unsafe.go", "plan/bytes.go", "stage/agent.go", "stage/agent_unsafe.go", "stage/graft.go", "stage/gate.go", "stage/idmap.go", "stage/later_unsafe.go",
	"stage/network.go", "stage/netexec.go", "stage/spawn.go", "stage/entry_unsafe.go", "stage/entryexec_unsafe.go", "stage/entrywait_unsafe.go", "stage/fault.go", "stage/aftermath.go", "stage/start.go", "stage/early.go", "stage/slot_unsafe.go", "wire/words.go"}

// TestHelperHolds: what is not for the helper is really not in it. What must be there is the control.
func TestHelperHolds(t *testing.T) {
	t.Chdir("../..")
	bin := filepath.Join(t.TempDir(), "bin")
	cmd := exec.Command("go", "build", "-trimpath", "-ldflags=-E=sbx_helper_start", "-o", bin, "./helper")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	hit, err := lines(bin)
	if err != nil {
		t.Fatal(err)
	}
	sum := 0
	for file, at := range hit {
		n, err := count(file, at)
		if err != nil {
			t.Fatal(err)
		}
		sum += n
	}
	if t.Logf("%d lines", sum); sum > most || hit["helper/permitted.go"] == nil || hit["shared/stage/mounts.go"] == nil {
		t.Errorf("the helper holds %d lines of %d files, want at most %d", sum, len(hit), most)
	}
	for _, f := range none {
		if _, err := os.Stat("shared/" + f); err != nil || hit["shared/"+f] != nil {
			t.Errorf("the helper holds some of shared/%s, or there is no such file: %v", f, err)
		}
	}
}

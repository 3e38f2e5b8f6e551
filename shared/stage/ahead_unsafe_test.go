package stage

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"sbx/shared/plan"
)

func aheadOf(t *testing.T, p *plan.Plan) *tape {
	t.Helper()
	tape, err := compileAhead(p, Folder{Dirs: []Dir{{"/s/abcdef", 0o700}}, Files: []File{{"/s/abcdef/hosts", "abcdef\n"}}}, 4, Stdio{-1, 1, 2})
	if err != nil || tape.full() {
		t.Fatalf("%v, full %v", err, tape.full())
	}
	return tape
}

// What was remembered is used for the same plan and for no other.
func TestAheadHoldsOnePlan(t *testing.T) {
	p := smallest("/usr/bin/true")
	file := (*aheadFile)(unsafe.Pointer(unsafe.SliceData(encodeAhead(aheadOf(t, p), nil, 0, true))))
	if !file.holds(aheadOf(t, p)) {
		t.Fatal("the same plan makes another tape")
	}
	if at := file.ops[0].a[1]; at != 0 && (at < aheadAt || at >= aheadAt+unsafe.Sizeof(aheadFile{})) {
		t.Errorf("an argument points to %#x, outside of the file", at)
	}
	for what, change := range map[string]func(*plan.Plan){
		"another host name": func(p *plan.Plan) { p.Hostname += "x" },
		"a writable mount": func(p *plan.Plan) {
			i := slices.IndexFunc(p.Mounts, func(m plan.Mount) bool { return m.Kind == plan.Bind && !m.Device })
			p.Mounts[i].Access = plan.ReadWrite
		},
		"no mount": func(p *plan.Plan) { p.Mounts = p.Mounts[:len(p.Mounts)-1] },
		"another filter": func(p *plan.Plan) {
			p.Seccomp.Program = append(p.Seccomp.Program[:0:0], p.Seccomp.Program...)
			p.Seccomp.Program[0].K++
		},
		"another limit": func(p *plan.Plan) {
			p.Limits = append(p.Limits, plan.Limit{Name: "nofile", Resource: 7, Soft: 5, Hard: 5})
		},
	} {
		other := smallest("/usr/bin/true")
		change(other)
		if file.holds(aheadOf(t, other)) {
			t.Errorf("%s is not seen", what)
		}
	}
}

// The broker carries out its own part of the file before it knows whether it is what it wants: that makes and writes files, and nothing else.
func TestAheadLeavesTheBrokerFilesOnly(t *testing.T) {
	tape := aheadOf(t, smallest("/usr/bin/true"))
	if s := tape.byBroker; s.from == 0 || s.to < s.from+10 || !brokers(tape.ops[s.from:s.to]) {
		t.Errorf("its part is %v", s)
	}
	if brokers(tape.ops) {
		t.Error("anything is let through")
	}
	for _, o := range []op{{kind: opCall, nr: unix.SYS_EXECVE}, {kind: opPoke}, {kind: opPoke, nr: unix.SYS_CLOSE}, {kind: opExpect, nr: unix.SYS_CLOSE}} {
		if brokers([]op{o}) {
			t.Errorf("%+v is let through", o)
		}
	}
}

// A file of an earlier run has the id of that run's session in it, at places that are known.
func TestAheadStoresWithinBounds(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "ahead")
	b := encodeAhead(aheadOf(t, smallest("/usr/bin/true")), []uint32{1, 2}, 0, true)
	for i := range maxAhead + 5 {
		store(dir, strings.Repeat("0", 14)+string(rune('a'+i/26))+string(rune('a'+i%26)), b)
	}
	old := filepath.Join(dir, "old")
	store(dir, "old", b)
	if err := os.Chtimes(old, time.Time{}, time.Now().Add(-2*staleIn)); err != nil {
		t.Fatal(err)
	}
	store(dir, "new", b)
	list, err := os.ReadDir(dir)
	if err != nil || len(list) > maxAhead {
		t.Errorf("%d files, want at most %d (%v)", len(list), maxAhead, err)
	}
	if _, err := os.Lstat(old); err == nil {
		t.Error("the stale file is still there")
	}
	got, err := os.ReadFile(filepath.Join(dir, "new"))
	if err != nil || string(got) != string(b) {
		t.Errorf("what was stored is not what was read (%v)", err)
	}
	if info, err := os.Lstat(filepath.Join(dir, "new")); err != nil || info.Mode() != 0o600 {
		t.Errorf("mode %v (%v), want 0600", info.Mode(), err)
	}
}

//go:build linux

package faststart

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"sbx.example/sbx/broker/internal/child"
	"sbx.example/sbx/broker/plan"
	"sbx.example/sbx/selftest/plans"
	"sbx.example/sbx/shared/stage"
	"sbx.example/sbx/shared/tape"
)

func aheadOf(t *testing.T, p *plan.Plan) *tape.Tape {
	t.Helper()
	tape, err := compileAhead(p, child.Folder{Dirs: []child.Dir{{Path: "/s/abcdef", Mode: 0o700}},
		Files: []child.File{{Path: "/s/abcdef/hosts", Text: "abcdef\n"}}}, 4, stage.Stdio{-1, 1, 2})
	if err != nil || tape.Full() {
		t.Fatalf("%v, full %v", err, tape.Full())
	}
	return tape
}

// What was remembered is used for the same plan and for no other.
func TestAheadHoldsOnePlan(t *testing.T) {
	p := plans.Smallest("/usr/bin/true")
	_, file := written(t, encodeAhead(aheadOf(t, p), nil, 0))
	if file == nil || !file.holds(aheadOf(t, p)) {
		t.Fatal("the same plan makes another tape")
	}
	if at := file.ops[0].A[1]; at != 0 && (at < aheadAt || at >= aheadAt+unsafe.Sizeof(aheadFile{})) {
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
		other := plans.Smallest("/usr/bin/true")
		change(other)
		if file.holds(aheadOf(t, other)) {
			t.Errorf("%s is not seen", what)
		}
	}
}

// What was read stays what it is, whatever becomes of the file: what process 1 carries out is what is compared.
func TestAheadIsReadOnce(t *testing.T) {
	p := plans.Smallest("/usr/bin/true")
	b := encodeAhead(aheadOf(t, p), nil, 0)
	for name, b := range map[string][]byte{"cut short": b[:len(b)-1], "too long": append(slices.Clone(b), 0),
		"empty": nil, "another magic": append([]byte{1}, b[1:]...),
		"too many instructions": append(append(slices.Clone(b[:8]), 0xff, 0xff, 0xff), b[11:]...)} {
		if _, m := written(t, b); m != nil {
			t.Errorf("%s: it is used", name)
		}
	}
	f, m := written(t, b)
	if m == nil || !m.holds(aheadOf(t, p)) {
		t.Fatal("the same plan makes another tape")
	}
	if _, err := f.WriteAt(make([]byte, len(b)), 0); err != nil {
		t.Fatal(err)
	}
	if !m.holds(aheadOf(t, p)) {
		t.Error("what is carried out changes with the file")
	}
}

// written is a file with b, and what was read from it.
func written(t *testing.T, b []byte) (*os.File, *aheadFile) {
	t.Helper()
	f, err := os.CreateTemp(t.TempDir(), "")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	if _, err := f.Write(b); err != nil {
		t.Fatal(err)
	}
	if _, err := f.Seek(0, 0); err != nil {
		t.Fatal(err)
	}
	m := readAhead(&aheadEntry{}, f.Fd())
	unmap := func() {
		_, _, _ = unix.Syscall(unix.SYS_MUNMAP, aheadAt, unsafe.Sizeof(aheadFile{}), 0)
	}
	if t.Cleanup(unmap); m == nil {
		unmap()
	}
	return f, m
}

// A file of an earlier run has the id of that run's session in it, at places that are known.
func TestAheadStoresWithinBounds(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "ahead")
	b := encodeAhead(aheadOf(t, plans.Smallest("/usr/bin/true")), []uint32{1, 2}, 0)
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

//go:build linux

package audit

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"sbx.example/sbx/selftest/need"
)

// inUserNamespace runs the test again as root of a namespace of its own, where an ordinary user may mount.
func inUserNamespace(t *testing.T) {
	t.Helper()
	cmd := exec.Command("/proc/self/exe", "-test.run=^"+t.Name()+"$")
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWUSER | syscall.CLONE_NEWNS,
		UidMappings: []syscall.SysProcIDMap{{HostID: unix.Geteuid(), Size: 1}}, GidMappings: []syscall.SysProcIDMap{
			{HostID: unix.Getegid(), Size: 1}}}
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	need.Fact(t, err == nil || errors.As(err, &exit), "unprivileged user namespaces")
	if err != nil {
		t.Fatalf("in a user namespace: %v\n%s", err, out)
	}
}

// smallDisk mounts a file system with those options, and returns a folder of it and what mounts it with others. Both
// are empty where the test ran in a namespace of its own.
func smallDisk(t *testing.T, options string) (dir string, remount func(options string)) {
	t.Helper()
	top := t.TempDir()
	if unix.Geteuid() != 0 {
		inUserNamespace(t)
		return "", nil
	}
	err := unix.Mount("sbxtest", top, "tmpfs", 0, "mode=700,"+options)
	need.Fact(t, err == nil, "permission to mount tmpfs")
	t.Cleanup(func() { unix.Unmount(top, unix.MNT_DETACH) })
	return filepath.Join(top, "a"), func(options string) {
		if err := unix.Mount("", top, "", unix.MS_REMOUNT, options); err != nil {
			t.Fatal(err)
		}
	}
}

// fill appends until there is no room, and goes on for a while. It returns how many records were refused.
func fill(t *testing.T, w *Writer) (refused int) {
	t.Helper()
	var err error
	for i := 0; i < 100 && err == nil; i++ {
		_, err = w.Append(Event{Kind: KindGrant, Path: strings.Repeat("p", 300)})
	}
	for refused = 1; err != nil && refused < 5; refused++ {
		if !errors.Is(err, unix.ENOSPC) {
			break
		}
		_, err = w.Soon(Event{Kind: KindGrant, Path: strings.Repeat("p", 1000)})
	}
	if !errors.Is(err, unix.ENOSPC) {
		t.Fatalf("after %d refusals: %v, want ENOSPC as long as there is no room", refused, err)
	}
	return refused
}

// records reads a log that verifies and is sealed: its kinds, and how many records it says are missing.
func records(t *testing.T, path string) (kinds []string, missing int) {
	t.Helper()
	if rep, err := VerifyFile(path); err != nil || !rep.Sealed {
		t.Fatalf("the log does not verify: %v, sealed=%v", err, rep.Sealed)
	}
	for e, err := range Query(path, Filter{}) {
		if err != nil {
			t.Fatal(err)
		}
		kinds = append(kinds, e.Kind)
		if len(e.Detail) == 1 && e.Detail[0].K == "missing" {
			n, _ := strconv.Atoi(e.Detail[0].V)
			missing += n
		}
	}
	return kinds, missing
}

// A log for which there was no room is written again once there is some, after a record of how many are missing.
func TestFullDisk(t *testing.T) {
	dir, remount := smallDisk(t, "size=8k")
	if dir == "" {
		return
	}
	w, err := Create(dir, "s1", Options{})
	if err != nil {
		t.Fatal(err)
	}
	lost := fill(t, w)
	whole, err := os.ReadFile(w.Path())
	if err != nil || !bytes.HasSuffix(whole, []byte("}\n")) {
		t.Fatalf("%v: half a record stayed: %q", err, whole[max(0, len(whole)-80):])
	}
	remount("size=64k")
	if _, err := w.Append(Event{Kind: KindGrant, Path: "/there"}); err != nil {
		t.Fatalf("with room again: %v", err)
	}
	if _, err := w.Append(Event{Kind: KindAsk}); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	kinds, missing := records(t, w.Path())
	want := []string{KindError, KindGrant, KindAsk, KindSeal}
	if got := kinds[len(kinds)-4:]; !slices.Equal(got, want) {
		t.Errorf("the log ends with %v, want %v", got, want)
	}
	if missing != lost {
		t.Errorf("%d are said to be missing, want %d", missing, lost)
	}
}

// What was promised to be written later is not lost for want of room, and is in its place once there is some.
func TestFullDiskLater(t *testing.T) {
	dir, remount := smallDisk(t, "size=8k")
	if dir == "" {
		return
	}
	w, err := Create(dir, "s1", Options{})
	if err != nil {
		t.Fatal(err)
	}
	w.mu.Lock() // before the next time that it catches up
	for err == nil && len(w.held) < 16<<10 {
		_, err = w.add(Event{Kind: KindAllow, Path: strings.Repeat("p", 300)}, true)
	}
	promised := w.seq
	w.mu.Unlock()
	if err != nil {
		t.Fatal(err)
	}
	w.catchUp()
	if _, err := w.Later(Event{Kind: KindAllow}); !errors.Is(err, unix.ENOSPC) {
		t.Errorf("without room: %v, want ENOSPC", err)
	}
	remount("size=64k")
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	kinds, missing := records(t, w.Path())
	if n := uint64(len(kinds)); n != promised+2 || missing != 1 {
		t.Errorf("%d records, %d missing: want the %d of before, one that says that 1 is missing, and a seal", n, missing,
			promised)
	}
}

// A part that cannot be ended, since no file can be made, goes on to be the last one and is ended later.
func TestFullDiskRotates(t *testing.T) {
	dir, remount := smallDisk(t, "nr_inodes=3")
	if dir == "" {
		return
	}
	w, err := Create(dir, "s1", Options{MaxBytes: 2000})
	if err != nil {
		t.Fatal(err)
	}
	lost := fill(t, w)
	if parts, err := Parts(w.Path()); err != nil || len(parts) != 1 {
		t.Fatalf("%v %v: want one part", parts, err)
	}
	remount("nr_inodes=30")
	add(t, w, KindAsk)
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	kinds, missing := records(t, w.Path())
	if parts, _ := Parts(w.Path()); len(parts) != 2 || missing != lost {
		t.Errorf("parts %v with %v, %d missing: want two parts and %d", parts, kinds, missing, lost)
	}
}

// Who follows a log is told no half of a record that was taken back.
func TestFollowTakenBack(t *testing.T) {
	_, path := newLog(t, Options{})
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	shown := filepath.Join(t.TempDir(), "log")
	f, err := os.Create(shown)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	r, err := os.Open(shown)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	n := 0
	follow := tail{fn: func(Event) bool { n++; return true }}
	for _, b := range [][]byte{[]byte(`{"seq":1,"time":"half of another`), whole} {
		if err := f.Truncate(0); err != nil {
			t.Fatal(err)
		}
		if _, err := f.WriteAt(b, 0); err != nil {
			t.Fatal(err)
		}
		if end, err := follow.drain(r); end || err != nil {
			t.Fatalf("end=%v %v", end, err)
		}
	}
	if n != 1 {
		t.Errorf("told of %d records, want the one that stayed", n)
	}
}

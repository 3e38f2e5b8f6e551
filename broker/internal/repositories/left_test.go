//go:build linux

package repositories

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"sbx.example/sbx/broker/internal/guard"
	"sbx.example/sbx/broker/internal/host"
	"sbx.example/sbx/broker/plan"
)

// TestRebaseCommands: a list of a rebase is told of if git would run something by it.
func TestRebaseCommands(t *testing.T) {
	for todo, want := range map[string]bool{"pick abc subject\n": false, "pick a\nexec make\n": true, "x true": true,
		"  exec  x\n": true, "# exec x\n": false, "pick exec exec\n": false, "": false} {
		if hasCommand(todo) != want {
			t.Errorf("%q: %v", todo, !want)
		}
	}
}

// TestNameBelowACopiedMount: the kernel names what is held through a copy of a mount without what the copy is of.
func TestNameBelowACopiedMount(t *testing.T) {
	const marker = "SBX_TEST_COPIED_MOUNT"
	if dir := os.Getenv(marker); dir != "" {
		nameBelowACopiedMount(t, dir)
		return
	}
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, "state/deep"), 0o755); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("/proc/self/exe", "-test.run", "^"+t.Name()+"$", "-test.v")
	cmd.Env = append(os.Environ(), marker+"="+dir)
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWUSER | syscall.CLONE_NEWNS,
		UidMappings: []syscall.SysProcIDMap{{HostID: os.Getuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{HostID: os.Getgid(), Size: 1}}}
	if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), "--- PASS") {
		t.Fatalf("%v\n%s", err, out)
	}
}

func nameBelowACopiedMount(t *testing.T, dir string) {
	copied, err := unix.OpenTree(unix.AT_FDCWD, dir+"/state", unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC)
	if err != nil {
		t.Fatal(err)
	}
	fd, err := unix.Openat(copied, "deep", unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	if name, err := os.Readlink("/proc/self/fd/" + strconv.Itoa(fd)); err != nil || name != "/deep" {
		t.Errorf("the kernel says %q, %v: so this proves nothing", name, err)
	}
	p := &plan.Plan{Mounts: []plan.Mount{{Target: dir}, {Target: dir + "/state"}}}
	if name, err := nameOf(p, fd); err != nil || name != dir+"/state/deep" {
		t.Errorf("%q, %v", name, err)
	}
}

// TestWorkspacesBeyond: directories that were removed take nobody's place among those that are held; and of names that
// were not held it is said that there may be some, also where of the others none is left.
func TestWorkspacesBeyond(t *testing.T) {
	top := t.TempDir()
	make := func(l *Left, name string) {
		t.Helper()
		if err := os.MkdirAll(filepath.Join(top, name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(top, name, ".envrc"), nil, 0o644); err != nil {
			t.Fatal(err)
		}
		fd, err := unix.Open(filepath.Join(top, name), unix.O_PATH|unix.O_CLOEXEC, 0)
		if err != nil {
			t.Fatal(err)
		}
		defer unix.Close(fd)
		st, _ := host.StampOf(fd, "")
		l.Workspace(guard.ID{Dev: st.Dev, Ino: st.Ino, Born: st.Born}, fd, ".envrc")
	}
	remove := func(name string) {
		if err := os.RemoveAll(filepath.Join(top, name)); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		what      string
		first     int    // directories that are made before the last one
		gone      string // when these are removed
		want, not string
	}{
		{what: "the control", first: 1, want: "last/.envrc", not: "more"},
		{what: "many that go", first: maxWorkspaces, gone: "before", want: "last/.envrc: editors", not: "more"},
		{what: "many that stay", first: maxWorkspaces, want: " more: editors", not: "not looked at"},
		{what: "many that go later", first: maxWorkspaces, gone: "after",
			want: "made: names in directories that were not looked at: editors", not: ".envrc"},
	} {
		var l Left
		first := func(each func(name string)) {
			for i := range c.first {
				each("t" + strconv.Itoa(i))
			}
		}
		if first(func(name string) { make(&l, name) }); c.gone == "before" {
			first(remove)
		}
		if make(&l, "last"); c.gone == "after" {
			first(remove)
		}
		got := strings.Join(l.inWorkspaces(&plan.Plan{}), "\n")
		if !strings.Contains(got, c.want) || strings.Contains(got, c.not) {
			t.Errorf("%s: %q", c.what, got)
		}
		first(remove)
		remove("last")
	}
	var l Left
	for i := range maxWorkspaces {
		l.Open(filepath.Join(top, strconv.Itoa(i)), &guard.Judge{})
	}
	if l.Open(filepath.Join(top, "0"), &guard.Judge{}); l.unopened {
		t.Error("one that is known is one more")
	}
	if l.Open(filepath.Join(top, "last"), &guard.Judge{}); !l.unopened {
		t.Error("one that is not looked through is not told of")
	}
}

// TestBeyond: more repositories than are held are looked for, and trees that were not read to their end are told.
func TestBeyond(t *testing.T) {
	top := t.TempDir()
	var l Left
	open := func(name string) (guard.ID, int) {
		if err := os.MkdirAll(filepath.Join(top, name), 0o755); err != nil {
			t.Fatal(err)
		}
		fd, err := unix.Open(filepath.Join(top, name), unix.O_PATH|unix.O_CLOEXEC, 0)
		if err != nil {
			t.Fatal(err)
		}
		st, _ := host.StampOf(fd, "")
		return guard.ID{Dev: st.Dev, Ino: st.Ino, Born: st.Born}, fd
	}
	for i := range 2 * maxMadeRepositories {
		id, fd := open("r" + strconv.Itoa(i))
		l.Repository(id, fd)
		unix.Close(fd)
	}
	if len(l.repositories) != maxMadeRepositories || len(l.beyond) != maxMadeRepositories || l.unseen != 0 {
		t.Fatalf("%d held, %d noted, %d unseen", len(l.repositories), len(l.beyond), l.unseen)
	}
	var found []string
	note := func(fd int) {
		name, _ := os.Readlink("/proc/self/fd/" + strconv.Itoa(fd))
		found = append(found, filepath.Base(name))
	}
	if l.search([]string{top}, time.Now(), note); l.unseen != 1 || len(found) != 0 {
		t.Errorf("without time %d trees were not looked at, and %q found", l.unseen, found)
	}
	if err := os.Rename(filepath.Join(top, "r100"), filepath.Join(top, "r0/moved")); err != nil {
		t.Fatal(err)
	}
	l.search([]string{top}, time.Now().Add(time.Minute), note)
	if len(found) != maxMadeRepositories || !slices.Contains(found, "moved") || len(l.beyond) != 0 || l.unseen != 1 {
		t.Errorf("found %q, %d left, %d unseen", found, len(l.beyond), l.unseen)
	}
	if err := os.RemoveAll(top); err != nil {
		t.Fatal(err)
	}
	if l.letGo(); len(l.repositories) != 0 {
		t.Errorf("%d are held that were removed", len(l.repositories))
	}
}

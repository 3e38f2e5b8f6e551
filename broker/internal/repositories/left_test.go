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

//go:build linux

package selftest

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"sbx.example/sbx/selftest/need"
)

// killsGroup mounts the control group that it is in and ends everybody in there. To the topmost group the first
// namespace of groups may not write (nsdelegate), and one below it may.
const killsGroup = `mkdir /tmp/g && mount -t cgroup2 none /tmp/g && mkdir /tmp/g/one || exit 5
echo $$ >/tmp/g/one/cgroup.procs && echo MADE && exec unshare --cgroup sh -c "echo 1 >/tmp/g/cgroup.kill"`

// groupOfUser makes a version 2 group all of whose files are the user's, as a user's systemd has them, and in which no
// limits can be had. It must be empty at the end.
func groupOfUser(t *testing.T) (dir string) {
	t.Helper()
	need.Root(t, "making a control group of the user's")
	var err error
	for _, root := range [...]string{hierarchy + "/unified", hierarchy} {
		if dir, err = os.MkdirTemp(root, "sbx-selftest-"); err == nil {
			break
		}
	}
	if err != nil {
		need.Fact(t, false, noGroups)
	}
	t.Cleanup(func() { _, _ = os.Remove(dir+"/one"), os.Remove(dir) })
	_, err = os.Stat(dir + "/cgroup.kill")
	need.Fact(t, err == nil, noGroups)
	if err := shop.own(dir); err != nil {
		t.Fatal(err)
	}
	return dir
}

// TestNestedGroup: what makes namespaces inside is in no group with what is outside.
func TestNestedGroup(t *testing.T) {
	needSandbox(t)
	home, project := sandboxHome(t)
	dir := groupOfUser(t)
	group, err := os.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer group.Close()
	begin := func(args ...string) (*exec.Cmd, *strings.Builder) {
		t.Helper()
		cmd, out := exec.Command(args[0], args[1:]...), &strings.Builder{}
		cmd.Env, cmd.Dir, cmd.SysProcAttr = shop.env(home, home), project, shop.attr()
		cmd.SysProcAttr.UseCgroupFD, cmd.SysProcAttr.CgroupFD = true, int(group.Fd())
		cmd.Stdout, cmd.Stderr = out, out
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		return cmd, out
	}
	outside, _ := begin("sleep", "600")
	cmd, out := begin(shop.sbx, "run", "-q", "--nested", "--", "unshare", "-Urm", "--cgroup", "sh", "-c", killsGroup)
	var exit *exec.ExitError
	err = cmd.Wait()
	if !errors.As(err, &exit) || !strings.Contains(out.String(), "MADE") {
		t.Errorf("control: the program did not end what is in its own group: %v\n%s", err, out)
	} else if exit.Sys().(syscall.WaitStatus).Signaled() {
		t.Error("the program has ended sbx")
	}
	_ = filepath.WalkDir(dir, func(p string, e fs.DirEntry, err error) error {
		if err == nil && p != dir && e.IsDir() {
			t.Errorf("%s is left", p)
		}
		return nil
	})
	_ = outside.Process.Signal(syscall.SIGTERM)
	if err := outside.Wait(); !errors.As(err, &exit) || exit.Sys().(syscall.WaitStatus).Signal() != syscall.SIGTERM {
		t.Errorf("the program has ended what is outside: %v", err)
	}
}

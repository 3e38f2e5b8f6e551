package resources

import (
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"sbx/selftest/need"
)

// here is a place of a version 2 hierarchy in which this process may make groups, and whose processes it may move.
func here(t *testing.T) Parent {
	t.Helper()
	for _, dir := range []string{"/sys/fs/cgroup", "/sys/fs/cgroup/unified"} {
		if _, err := os.Stat(dir + "/cgroup.kill"); err != nil { // the topmost one has none
			if _, err := os.Stat(dir + "/cgroup.procs"); err != nil {
				continue
			}
		}
		dir, err := os.MkdirTemp(dir, "sbx-mourn-test-")
		if err != nil {
			continue
		}
		t.Cleanup(func() { _ = removeGroups(dir) })
		if _, err := os.Stat(dir + "/cgroup.kill"); err != nil {
			continue
		}
		return Parent{Dir: dir}
	}
	need.Fact(t, false, "a version 2 hierarchy with cgroup.kill in which this user may make control groups")
	return Parent{}
}

// brokerEnv names the parent group for TestMourned's other half.
const brokerEnv = "SBX_TEST_MOURNED"

// TestMournedBroker is a broker that has a group with a process in it, and waits to be killed.
func TestMournedBroker(t *testing.T) {
	parent := os.Getenv(brokerEnv)
	if parent == "" {
		return
	}
	g, err := Parent{Dir: parent}.Make("one")
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("sleep", "900")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if err := g.Add(cmd.Process.Pid); err != nil {
		t.Fatal(err)
	}
	if err := g.Mourned(); err != nil {
		t.Fatal(err)
	}
	os.Stdout.WriteString("mourner " + strconv.Itoa(g.mourner) + "\n")
	_, _ = io.Copy(io.Discard, os.Stdin)
	if err := g.Remove(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat("/proc/" + strconv.Itoa(g.mourner)); err == nil && g.mourner != 0 {
		t.Error("the mourner is there still")
	}
}

func TestMourned(t *testing.T) {
	p := here(t)
	start := func() (*exec.Cmd, io.Closer, int) {
		cmd := exec.Command(os.Args[0], "-test.run", "^TestMournedBroker$")
		cmd.Env = append(os.Environ(), brokerEnv+"="+p.Dir)
		in, err := cmd.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		b := make([]byte, 4096)
		n, _ := out.Read(b)
		pid, err := strconv.Atoi(strings.TrimSpace(strings.TrimPrefix(string(b[:n]), "mourner ")))
		if err != nil || pid <= 0 {
			need.Fact(t, false, "the right to move a process into a control group: %s", b[:n])
		}
		go func() { _, _ = io.Copy(io.Discard, out) }()
		return cmd, in, pid
	}
	gone := func(what string) {
		t.Helper()
		for end := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
			if _, err := os.Stat(p.Dir + "/sbx-one"); os.IsNotExist(err) {
				return
			}
			if time.Now().After(end) {
				b, _ := os.ReadFile(p.Dir + "/sbx-one/cgroup.procs")
				t.Fatalf("%s: the group is there still: %q", what, b)
			}
		}
	}
	for range 3 { // killed
		cmd, _, pid := start()
		b, err := os.ReadFile(p.Dir + "/sbx-one/cgroup.procs")
		if err != nil || len(strings.Fields(string(b))) != 1 {
			t.Fatalf("%q, %v", b, err)
		}
		for end := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) { // it closes all others as soon as it runs
			list, _ := os.ReadDir("/proc/" + strconv.Itoa(pid) + "/fd")
			if len(list) == mournEnd {
				break
			}
			if time.Now().After(end) {
				t.Fatalf("the mourner has %d descriptors", len(list))
			}
		}
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		gone("killed")
		for end := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
			if _, err := os.Stat("/proc/" + strconv.Itoa(pid) + "/fd/0"); err != nil {
				break
			}
			if time.Now().After(end) {
				t.Fatal("the mourner stays")
			}
		}
	}
	cmd, in, pid := start() // in the ordinary way
	in.Close()
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
	gone("ended")
	if _, err := os.Stat("/proc/" + strconv.Itoa(pid) + "/fd/0"); err == nil {
		t.Error("the mourner stays after its broker ended")
	}
}

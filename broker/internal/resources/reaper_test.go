//go:build linux

package resources

import (
	"bufio"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"sbx.example/sbx/selftest/need"
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
		dir, err := os.MkdirTemp(dir, "test-sbx-reaper-")
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

// brokerEnv names the parent group for TestReaper's other half.
const brokerEnv = "SBX_TEST_REAPED"

// TestMain is sbx where it starts itself: the test binary is what /proc/self/exe leads to.
func TestMain(m *testing.M) {
	if IsReaper(os.Args) {
		if err := Reap(os.Args); err != nil {
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// TestReapedBroker is a broker that has a group with a process in it, and waits to be killed.
func TestReapedBroker(t *testing.T) {
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
	r, err := g.startReaper()
	if err != nil {
		t.Fatal(err)
	}
	begun := make(chan *reaper, 1)
	begun <- r
	g.reaper = begun
	os.Stdout.WriteString("reaper " + strconv.Itoa(r.pid) + "\n")
	_, _ = io.Copy(io.Discard, os.Stdin)
	if err := g.Remove(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat("/proc/" + strconv.Itoa(r.pid)); err == nil {
		t.Error("the reaper is there still")
	}
}

// reaped is a broker that runs, and its reaper.
type reaped struct {
	*exec.Cmd
	in     io.Closer
	reaper int
}

func startReaped(t *testing.T, parent string) reaped {
	t.Helper()
	cmd := exec.Command(os.Args[0], "-test.run", "^TestReapedBroker$")
	cmd.Env = append(os.Environ(), brokerEnv+"="+parent)
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
	line, _ := bufio.NewReader(out).ReadString('\n')
	pid, err := strconv.Atoi(strings.TrimSpace(strings.TrimPrefix(line, "reaper ")))
	if err != nil || pid <= 0 {
		need.Fact(t, false, "the right to move a process into a control group: %s", line)
	}
	go func() { _, _ = io.Copy(io.Discard, out) }()
	return reaped{cmd, in, pid}
}

// waitFor waits for what the kernel and another process do.
func waitFor(t *testing.T, what string, there func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !there(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%s: not within a minute", what)
		}
	}
}

func TestReaper(t *testing.T) {
	p := here(t)
	removed := func() bool {
		_, err := os.Stat(p.Dir + "/sbx-one")
		return os.IsNotExist(err)
	}
	ended := func(pid int) func() bool {
		return func() bool {
			_, err := os.Stat("/proc/" + strconv.Itoa(pid) + "/fd/0") // none of a zombie
			return err != nil
		}
	}
	for range 3 { // killed, whether the reaper has come to wait or not
		b := startReaped(t, p.Dir)
		held, err := os.ReadFile(p.Dir + "/sbx-one/cgroup.procs")
		if err != nil || len(strings.Fields(string(held))) != 1 {
			t.Fatalf("%q, %v", held, err)
		}
		_ = b.Process.Kill()
		_ = b.Wait()
		waitFor(t, "the group of a killed broker is removed", removed)
		waitFor(t, "its reaper ends", ended(b.reaper))
	}
	b := startReaped(t, p.Dir) // in the ordinary way
	b.in.Close()
	if err := b.Wait(); err != nil {
		t.Error(err)
	}
	if !removed() {
		t.Error("a broker that ends leaves its group")
	}
	waitFor(t, "the reaper ends with its broker", ended(b.reaper))
}

// Nobody else's group is taken for a session's.
func TestIsReaper(t *testing.T) {
	for _, c := range []struct {
		args []string
		want bool
	}{
		{[]string{"sbx", "reap-group", "/g/sbx-a"}, true},
		{[]string{"sbx", "reap-group", "/g/user.slice"}, false},
		{[]string{"sbx", "reap-group"}, false},
		{[]string{"sbx", "run", "/g/sbx-a"}, false},
	} {
		if got := IsReaper(c.args); got != c.want {
			t.Errorf("%q: %v", c.args, got)
		}
	}
}

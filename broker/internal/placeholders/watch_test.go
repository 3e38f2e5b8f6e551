//go:build linux

package placeholders

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"sbx.example/sbx/broker/internal/agentprofile"
	"sbx.example/sbx/broker/internal/host"
	"sbx.example/sbx/broker/internal/policy"
	"sbx.example/sbx/broker/internal/program"
	"sbx.example/sbx/selftest/need"
)

// callEnv is the records' folder for a test binary that is to be a call of bwrap, in its directory.
const callEnv = "SBX_TEST_CALL"

// TestMain is sbx where it starts itself, and a call below an agent.
func TestMain(m *testing.M) {
	switch state := os.Getenv(callEnv); {
	case IsWatcher(os.Args):
		if err := Serve(os.Args); err != nil {
			os.Exit(1)
		}
	case state != "":
		cwd, _ := os.Getwd()
		Watch(state, policy.Sources{}, []string{cwd})
	default:
		os.Exit(m.Run())
	}
	os.Exit(0)
}

func born(t *testing.T, file string) int64 {
	st, _ := host.FS{}.Stamp(file)
	return st.Born
}

// agentOf is a shell with an agent's name that does line by line what it is told.
type agentOf struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Reader
}

func startAgent(t *testing.T, name, dir, state string) *agentOf {
	t.Helper()
	a := &agentOf{cmd: &exec.Cmd{Path: "/bin/sh", Args: []string{name}, Dir: dir, Stderr: os.Stderr,
		Env: []string{callEnv + "=" + state, "PATH=/usr/bin:/bin", "CALL=" + self(t)}}}
	a.in, _ = a.cmd.StdinPipe()
	out, _ := a.cmd.StdoutPipe()
	a.out = bufio.NewReader(out)
	if err := a.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(a.end)
	_, began := program.Process(a.cmd.Process.Pid)
	clockPast(t, t.TempDir()+"/now", start(began)) // what is as old as the agent is not its own
	return a
}

func self(t *testing.T) string {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return exe
}

// do has the agent run a line, and waits until it has.
func (a *agentOf) do(t *testing.T, line string) {
	t.Helper()
	fmt.Fprintln(a.in, line+"; echo done $?")
	if got, err := a.out.ReadString('\n'); got != "done 0\n" {
		t.Fatalf("%s: %q, %v", line, got, err)
	}
}

func (a *agentOf) end() {
	_ = a.cmd.Process.Kill()
	_ = a.cmd.Wait()
}

// watched says whether a watcher is there, and waits for its end if it is to.
func watched(t *testing.T, state, dir string, wait bool) bool {
	t.Helper()
	fd, err := unix.Open(state+"/placeholders/"+listName(dir), unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err == unix.ENOENT {
		return false
	}
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	how := unix.LOCK_EX
	if !wait {
		how |= unix.LOCK_NB
	}
	return unix.Flock(fd, how) != nil
}

const makes = "mkdir -p .git/info .git/glab-cli .git/info/.claude-sandbox-noreplace .claude/x; : >.git/config.worktree"

// What an agent made is gone when it has been killed, and not while it lives; a call that ends changes nothing. The
// folder of records is made.
func TestWatch(t *testing.T) {
	state, dir := t.TempDir()+"/state/sbx", t.TempDir()
	a := startAgent(t, "/usr/bin/claude", dir, state)
	a.do(t, makes+"; echo x >.git/remotes; $CALL && $CALL")
	if !watched(t, state, dir, false) || !host.Exists(dir+"/.git/glab-cli") {
		t.Fatal("nobody waits for the agent's end, or nothing is there any more")
	}
	a.end()
	watched(t, state, dir, true)
	if got := all(t, dir); !slices.Equal(got, []string{".git", ".git/info", ".git/remotes"}) {
		t.Errorf("left are %q", got)
	}
	if list, err := os.ReadDir(state + "/placeholders"); err != nil || len(list) > 0 {
		t.Errorf("the folder of lists holds %v, %v", list, err)
	}
}

// Nothing is kept in mind, nor removed, of a program that is no agent.
func TestWatchNobody(t *testing.T) {
	state, dir := t.TempDir(), t.TempDir()
	a := startAgent(t, "/usr/bin/clod", dir, state)
	a.do(t, makes+"; $CALL")
	if host.Exists(state + "/placeholders") {
		t.Error("there is a list")
	}
	a.end()
	if len(all(t, dir)) != 7 {
		t.Errorf("left are %q", all(t, dir))
	}
}

// What two agents share stays until both have ended, whichever made it, also where the watcher is killed meanwhile.
func TestWatchShared(t *testing.T) {
	state, dir := t.TempDir(), t.TempDir()
	a := startAgent(t, "claude", dir, state)
	a.do(t, makes+"; $CALL")
	b := startAgent(t, "claude", dir, state)
	b.do(t, "$CALL")
	a.end()
	watcher := watcherOf(t, dir)
	if watcher == 0 || !host.Exists(dir+"/.git/glab-cli") {
		t.Fatal("what the second agent uses is gone")
	}
	if err := unix.Kill(watcher, unix.SIGKILL); err != nil {
		t.Fatal(err)
	}
	watched(t, state, dir, true)
	b.do(t, "$CALL")
	if watcherOf(t, dir) == 0 {
		t.Fatal("there is no other watcher")
	}
	b.end()
	watched(t, state, dir, true)
	if got := all(t, dir); !slices.Equal(got, []string{".git", ".git/info"}) {
		t.Errorf("left are %q", got)
	}
}

// An agent has ended also where nobody has asked for its status.
func TestWatchUnreaped(t *testing.T) {
	state, dir := t.TempDir(), t.TempDir()
	a := startAgent(t, "claude", dir, state)
	a.do(t, makes+"; $CALL")
	_ = a.cmd.Process.Kill()
	watched(t, state, dir, true)
	if got := all(t, dir); !slices.Equal(got, []string{".git", ".git/info"}) {
		t.Errorf("left are %q", got)
	}
}

// Agents that ended unwatched are forgotten with the next one: what was made between them is not an agent's.
func TestWatchForgets(t *testing.T) {
	state, dir := t.TempDir(), t.TempDir()
	line, _ := json.Marshal(agent{PID: 1 << 30, Began: 1, Since: 1, Names: []string{".git/branches"}})
	write(t, state+"/placeholders/"+listName(dir), string(line)+"\n")
	write(t, dir+"/.git/branches", "")
	a := startAgent(t, "claude", dir, state)
	a.do(t, makes+"; $CALL")
	a.end()
	watched(t, state, dir, true)
	if got := all(t, dir); !slices.Equal(got, []string{".git", ".git/branches", ".git/info"}) {
		t.Errorf("left are %q", got)
	}
}

// What a call that outlives its agent has mounts on stays until that has ended: its mask would be gone with it.
func TestWatchMounted(t *testing.T) {
	dir, folder := t.TempDir(), t.TempDir()
	if err := exec.Command("unshare", "-rm", "true").Run(); err != nil {
		need.Fact(t, false, "unshare -rm: %v", err)
	}
	write(t, dir+"/.git/config.worktree", "")
	write(t, dir+"/elsewhere/keep", "")
	line, _ := json.Marshal(agent{PID: 1 << 30, Began: 1, Since: 1, Names: []string{".git/config.worktree"}}) // it ended
	write(t, folder+"/"+listName(dir), string(line)+"\n")
	w := watcher{dir: dir, list: opened(t, folder+"/"+listName(dir)), folder: opened(t, folder), top: opened(t, dir)}
	call := exec.Command("unshare", "-rm", "sh", "-c", "mount --bind . elsewhere && cd elsewhere && "+
		"mount --bind .git/config.worktree .git/config.worktree && echo up && read x")
	call.Dir, call.Stderr = dir, os.Stderr
	in, _ := call.StdinPipe()
	out, _ := call.StdoutPipe()
	if err := call.Start(); err != nil {
		t.Fatal(err)
	}
	if got, err := bufio.NewReader(out).ReadString('\n'); got != "up\n" {
		t.Fatalf("%q, %v", got, err)
	}
	a, more, err := w.last()
	if err != nil || !more || !host.Exists(dir+"/.git/config.worktree") {
		t.Fatalf("it waits for %v, %v, %v; is the name there: %v", a, more, err, host.Exists(dir+"/.git/config.worktree"))
	}
	in.Close()
	_ = call.Wait()
	if err := a.wait(); err != nil {
		t.Fatal(err)
	}
	if _, more, err := w.last(); err != nil || more || host.Exists(dir+"/.git/config.worktree") {
		t.Errorf("it still waits: %v, %v; or the name is there", more, err)
	}
}

func opened(t *testing.T, file string) int {
	t.Helper()
	fd, err := unix.Open(file, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Close(fd) })
	return fd
}

// watcherOf is the process that watches a directory.
func watcherOf(t *testing.T, dir string) int {
	t.Helper()
	list, _ := os.ReadDir("/proc")
	for _, e := range list {
		b, err := os.ReadFile("/proc/" + e.Name() + "/cmdline")
		if pid, bad := strconv.Atoi(e.Name()); err == nil && bad == nil &&
			string(b) == "sbx\x00"+watchCommand+"\x00"+dir+"\x00" {
			return pid
		}
	}
	return 0
}

func all(t *testing.T, dir string) (out []string) {
	t.Helper()
	b, err := exec.Command("find", dir, "-mindepth", "1", "-printf", "%P\n").Output()
	if err != nil {
		t.Fatal(err)
	}
	out = strings.Fields(string(b))
	slices.Sort(out)
	return out
}

// An agent is known by its program, or by the script that an interpreter of its runs.
func TestIsProgram(t *testing.T) {
	for _, p := range agentprofile.Naming([]string{"claude", "gemini"}, policy.Sources{}) {
		for _, c := range []struct {
			words string
			of    string
		}{{"/opt/claude -p x", "claude-code"}, {"node --max=1 /x/bin/gemini -p claude", "gemini-cli"}, {"vim claude", ""},
			{"node x.js gemini", ""}, {"sh -c claude", ""}, {"gemini", "gemini-cli"}, {"", ""}} {
			if got := isProgram(p, named(strings.Split(c.words, " "))); got != (p.Name == c.of) {
				t.Errorf("%s: %q: %v", p.Name, c.words, got)
			}
		}
	}
}

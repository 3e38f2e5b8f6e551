//go:build linux

package selftest

import (
	"bufio"
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"sbx.example/sbx/selftest/need"
)

// TestKilledWhileItCarriesWritesOut kills the broker, which carries out what changes a project, and process 1, at any
// moment: what the program was told to be done is there, whole; nothing is left mounted; the program is gone; and
// the next session sees what the last one made. An agent that is killed is started anew: the session goes on, and hides
// what the host makes under the name of a secret.
func TestKilledWhileItCarriesWritesOut(t *testing.T) {
	t.Parallel()
	needSandbox(t)
	need.Tool(t, "python3")
	script, err := os.ReadFile("testdata/saver.py")
	must(t, err)
	mounts, killed := mountTable(t), map[string]int{}
	for _, how := range [][]string{{"--mode", "static"}, {"--gate", "gatefs"}, {"--gate", "notify"}} {
		m := newFileProject(t, "")
		must(t, os.WriteFile(m.project+"/saver.py", script, 0o644))
		must(t, shop.own(m.home))
		for round := range 8 {
			victim := round % 4 // the broker first; more than the last child is the last
			what := fmt.Sprintf("%v, round %d", how, round)
			last, name := m.killed(t, how, fmt.Sprintf("saver-%d-%s", os.Getpid(), how[1]), victim)
			killed[name]++
			what += ", " + name
			m.checkSaved(t, what, last)
		}
	}
	if t.Logf("killed: %v", killed); len(killed) != 3 {
		t.Error("not all kinds of process were killed")
	}
	if now := mountTable(t); now != mounts {
		t.Errorf("the mount table changed:\n%s\nwas\n%s", now, mounts)
	}
}

// saver is a session with the program in it.
type saver struct {
	cmd   *exec.Cmd
	lines *bufio.Scanner
}

// said reads the next line that the program says: the number of what it has done, and what it sees of the host's file.
func (s *saver) said() (n int, late string, ok bool) {
	if !s.lines.Scan() {
		return 0, "", false
	}
	number, late, _ := strings.Cut(s.lines.Text(), " ")
	n, err := strconv.Atoi(number)
	return n, late, err == nil
}

// killed runs the program, kills the broker or one of its children, and returns the last number that the program said.
func (m *fileProject) killed(t *testing.T, how []string, token string, victim int) (last int, name string) {
	t.Helper()
	args := append([]string{shop.sbx, "run", "-q", "--prompt", "deny", "--mode", "dynamic"}, how...)
	s := &saver{cmd: m.command(m.project, append(args, "--", "python3", "saver.py", token)...)}
	out, err := s.cmd.StdoutPipe()
	must(t, err)
	must(t, s.cmd.Start())
	defer s.cmd.Process.Kill()
	s.lines = bufio.NewScanner(out)
	for range 1 + rand.IntN(20) {
		if _, _, ok := s.said(); !ok {
			t.Fatalf("%v: the program ended by itself: %v", how, s.cmd.Wait())
		}
	}
	time.Sleep(time.Duration(rand.Int64N(int64(3 * time.Millisecond))))
	name = "the broker"
	if victim > 0 {
		name = m.killChild(t, s, victim)
	} else {
		must(t, s.cmd.Process.Kill())
	}
	patience := time.AfterFunc(time.Minute, func() {
		t.Errorf("%v: %s was killed, and the program goes on", how, name)
		_ = s.cmd.Process.Kill()
	})
	defer patience.Stop()
	for {
		n, _, ok := s.said() // what was said until the end
		if !ok {
			break
		}
		last = n
	}
	_ = s.cmd.Wait()
	if err := waitGone(token, time.Minute); err != nil {
		t.Errorf("%v: %s was killed: %v", how, name, err)
	}
	return last, name
}

// killChild kills one of the broker's children. Where that is not process 1, it is an agent, which there is once there
// was something to hide; the session goes on, and the broker is killed when that was seen.
func (m *fileProject) killChild(t *testing.T, s *saver, victim int) (name string) {
	t.Helper()
	broker := s.cmd.Process.Pid
	if victim > 1 {
		m.makeSecret(t, s, "before the kill")
		must(t, os.Remove(m.project+"/.env.host"))
		s.until(t, "absent", "before the kill")
	}
	for err := error(syscall.ESRCH); err == syscall.ESRCH; { // some are there for a moment
		list := childrenOf(broker)
		pid := list[min(victim, len(list))-1]
		inside, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
		if name = "an agent"; bytes.Contains(inside, []byte(fmt.Sprintf("\nNSpid:\t%d\t1\n", pid))) {
			name = "process 1"
		}
		err = syscall.Kill(pid, syscall.SIGKILL)
	}
	if name == "process 1" {
		return name
	}
	m.makeSecret(t, s, name+" was killed")
	must(t, s.cmd.Process.Kill())
	return name
}

// makeSecret makes a secret on the host, and waits until it is hidden.
func (m *fileProject) makeSecret(t *testing.T, s *saver, when string) {
	t.Helper()
	must(t, os.WriteFile(m.project+"/.env.host", []byte("SECRET=1\n"), 0o644))
	must(t, shop.own(m.project+"/.env.host"))
	s.until(t, "refused", when)
}

// until waits until the program sees the host's file so.
func (s *saver) until(t *testing.T, want, when string) {
	t.Helper()
	for end := time.Now().Add(time.Minute); ; {
		_, late, ok := s.said()
		if late == want {
			return
		}
		if !ok || time.Now().After(end) {
			t.Errorf("%s: the session goes on %t, the host's secret is %s, want %s", when, ok, late, want)
			return
		}
	}
}

// checkSaved wants all that was said to be done.
func (m *fileProject) checkSaved(t *testing.T, what string, last int) {
	t.Helper()
	whole := func(name string) int {
		b, err := os.ReadFile(filepath.Join(m.project, name))
		if err != nil {
			return -1
		}
		first, _, _ := strings.Cut(string(b), "\n")
		n, err := strconv.Atoi(first)
		if err != nil || string(b) != strings.Repeat(first+"\n", 200) {
			t.Errorf("%s: %s is not whole: %.40q", what, name, b)
		}
		return n
	}
	if n := whole("saved"); n < last {
		t.Errorf("%s: saved is %d, and %d was done", what, n, last)
	}
	env, local := whole(".env"), whole(".env.local")
	left, _ := filepath.Glob(m.project + "/.sbx-replace-*")
	if max(env, local) < last {
		t.Errorf("%s: .env is %d, and %d was done (left over: %q)", what, env, last, left)
	}
	if len(left) > 0 {
		t.Errorf("%s: left over: %q", what, left)
	}
	log, err := os.ReadFile(m.project + "/log")
	if got := strings.Fields(string(log)); err != nil || len(got) < last || last > 0 && got[last-1] != fmt.Sprint(last) {
		t.Errorf("%s: the log has %d lines, and %d were written: %v", what, len(got), last, err)
	}
	said := m.run(t, m.project, shop.sbx, "run", "-q", "--prompt", "deny", "--", "head", "-1", "saved")
	if said != fmt.Sprintln(whole("saved")) {
		t.Errorf("%s: the next session reads %q", what, said)
	}
	m.run(t, m.project, "sh", "-c", "rm -rf saved .env .env.local .env.tmp .env.host log made moved *.tmp .sbx-replace-*")
}

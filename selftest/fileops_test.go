package selftest

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// scenario is one part of testdata/fileops.txt.
type scenario struct {
	name  string
	why   string // what comes of it may differ, and this is why
	lines []string
}

func readScenarios(t *testing.T) (out []scenario) {
	t.Helper()
	b, err := os.ReadFile("testdata/fileops.txt")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(b)) {
		line = strings.TrimSpace(line)
		if name, ok := strings.CutPrefix(line, "## "); ok {
			out = append(out, scenario{name: name})
			continue
		}
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		s := &out[len(out)-1]
		if why, ok := strings.CutPrefix(line, "~ "); ok {
			s.why = why
			continue
		}
		s.lines = append(s.lines, line)
	}
	return out
}

// hand is one process that carries out lines.
type hand struct {
	in  io.WriteCloser
	out *bufio.Reader
	cmd *exec.Cmd
}

// hand starts one in the project, with what stands before its command.
func (m *fileMatrix) hand(t *testing.T, before []string) *hand {
	t.Helper()
	argv := append(slices.Clone(before), m.program)
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Dir, cmd.SysProcAttr, cmd.Env, cmd.Stderr = m.project, shop.attr(), shop.env(m.home, m.home), os.Stderr
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
	h := &hand{in, bufio.NewReader(out), cmd}
	t.Cleanup(h.end)
	return h
}

func (h *hand) do(line string) string {
	if _, err := io.WriteString(h.in, line+"\n"); err != nil {
		return "gone: " + err.Error()
	}
	said, err := h.out.ReadString('\n')
	if err != nil {
		return "gone: " + err.Error()
	}
	return strings.TrimSuffix(said, "\n")
}

func (h *hand) end() {
	h.in.Close()
	_ = h.cmd.Wait()
}

// fileMatrix is where the scenarios are carried out: in a large directory of a project.
type fileMatrix struct {
	home, project string
	large         string // a directory of the project that is mounted as it is
	program       string
	n             int
}

func newFileMatrix(t *testing.T) *fileMatrix {
	t.Helper()
	home, err := os.MkdirTemp(shop.dir, "files-")
	if err != nil {
		t.Fatal(err)
	}
	m := &fileMatrix{home: home, project: filepath.Join(home, "project"), large: filepath.Join(home, "project", "large"), program: filepath.Join(home, "project", "fileops")}
	if err := os.MkdirAll(m.large, 0o755); err != nil {
		t.Fatal(err)
	}
	for i := range 1600 {
		if err := os.WriteFile(filepath.Join(m.large, fmt.Sprint(i)), nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.Command("go", "build", "-trimpath", "-buildvcs=false", "-o", m.program, "./selftest/fileops")
	cmd.Dir, cmd.Env = shop.source, append(os.Environ(), "CGO_ENABLED=0")
	if text, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("building fileops: %v\n%s", err, text)
	}
	if err := os.Chmod(home, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := shop.own(home); err != nil {
		t.Fatal(err)
	}
	return m
}

// run runs a command as the ordinary user.
func (m *fileMatrix) run(t *testing.T, dir string, args ...string) string {
	t.Helper()
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Dir, cmd.SysProcAttr, cmd.Env = dir, shop.attr(), shop.env(m.home, m.home)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %v\n%s", args, err, out)
	}
	return string(out)
}

// mustBeJudged makes sure that the large directory is the host's own, read-only for the kernel: else something else would be tested.
func (m *fileMatrix) mustBeJudged(t *testing.T) {
	t.Helper()
	for _, mode := range []string{"static", "dynamic"} {
		mounts := m.run(t, m.project, shop.sbx, "run", "-q", "--mode", mode, "--prompt", "deny", "--", "cat", "/proc/self/mountinfo")
		if !strings.Contains(mounts, " "+m.large+" ro,") {
			t.Fatalf("%s: %s is not mounted read-only:\n%s", mode, m.large, mounts)
		}
	}
}

// way is how A and B stand to each other.
type way struct {
	name  string
	hands map[byte]*hand
}

// ways starts the pairs: the first is outside, as what the others are compared with.
func (m *fileMatrix) ways(t *testing.T) (out []way) {
	outside := []string(nil)
	static := []string{shop.sbx, "run", "-q", "--static", "--"}
	dynamic := []string{shop.sbx, "run", "-q", "--mode", "dynamic", "--prompt", "deny", "--"}
	for _, w := range []struct {
		name string
		a, b []string
	}{{"outside", outside, outside}, {"inside, outside", static, outside}, {"outside, inside", outside, static}, {"two sandboxes", static, static},
		{"dynamic: inside, outside", dynamic, outside}, {"dynamic: outside, inside", outside, dynamic}} {
		out = append(out, way{w.name, map[byte]*hand{'A': m.hand(t, w.a), 'B': m.hand(t, w.b)}})
	}
	return out
}

// perform carries a scenario out in a directory of its own.
func (m *fileMatrix) perform(t *testing.T, s scenario, w way) []string {
	t.Helper()
	m.n++
	work := fmt.Sprintf("work%d", m.n)
	dir := filepath.Join(m.large, work)
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := shop.own(dir); err != nil {
		t.Fatal(err)
	}
	for _, h := range w.hands {
		for _, l := range []string{"reset", "chdir " + dir} {
			if said := h.do(l); said != "ok" {
				t.Fatalf("%s, %s: %s: %s", s.name, w.name, l, said)
			}
		}
	}
	var out []string
	for _, l := range s.lines {
		out = append(out, l+" → "+strings.ReplaceAll(w.hands[l[0]].do(l[2:]), work+"/", ""))
	}
	return out
}

func TestFileOperations(t *testing.T) {
	needSandbox(t)
	m := newFileMatrix(t)
	m.mustBeJudged(t)
	ways := m.ways(t)
	for _, s := range readScenarios(t) {
		t.Run(s.name, func(t *testing.T) {
			want := m.perform(t, s, ways[0])
			differs := false
			for _, w := range ways[1:] {
				got := m.perform(t, s, w)
				if slices.Equal(got, want) {
					continue
				}
				differs = true
				if s.why == "" {
					t.Errorf("%s:\n%s", w.name, difference(got, want))
				}
			}
			if s.why != "" && !differs {
				t.Errorf("nothing differs any more: %s", s.why)
			}
		})
	}
}

func difference(got, want []string) string {
	var b strings.Builder
	for i := range got {
		if got[i] != want[i] {
			fmt.Fprintf(&b, "  %s\n    outside: %s\n", got[i], want[i])
		}
	}
	return b.String()
}

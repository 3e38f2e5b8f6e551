//go:build linux

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
	"time"
)

// fileProject is a project of the ordinary user, and the program of selftest/fileops.
type fileProject struct {
	home, project string
	large         string // the directory of the project in which most of its names lie
	program       string
}

func newFileProject(t *testing.T, program string) *fileProject {
	t.Helper()
	home, err := os.MkdirTemp(shop.dir, "files-")
	must(t, err)
	m := &fileProject{home: home, project: filepath.Join(home, "project"), program: program}
	m.large = filepath.Join(m.project, "large")
	must(t, os.MkdirAll(m.large, 0o755))
	must(t, os.Chmod(home, 0o755))
	return m
}

// largeProject has 1600 names in one directory, and the program beside them.
func largeProject(t *testing.T) *fileProject {
	t.Helper()
	m := newFileProject(t, "")
	m.program = filepath.Join(m.project, "fileops")
	for i := range 1600 {
		must(t, os.WriteFile(filepath.Join(m.large, fmt.Sprint(i)), nil, 0o644))
	}
	program, err := os.ReadFile(fileops(t)) // of his own: a second name of a file is something else to a sandbox
	must(t, err)
	must(t, os.WriteFile(m.program, program, 0o755))
	must(t, shop.own(m.home))
	return m
}

// fileops is the program of selftest/fileops.
func fileops(t *testing.T) string {
	t.Helper()
	program, err := shop.program("fileops", "./selftest/fileops")
	must(t, err)
	return program
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// run runs a command as the ordinary user.
func (m *fileProject) run(t *testing.T, dir string, args ...string) string {
	t.Helper()
	out, err := m.command(dir, args...).CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %v\n%s", args, err, out)
	}
	return string(out)
}

func (m *fileProject) command(dir string, args ...string) *exec.Cmd {
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Dir, cmd.SysProcAttr, cmd.Env = dir, shop.attr(), shop.env(m.home, m.home)
	return cmd
}

// mustBeJudged makes sure that the project is the host's own, read-only for the kernel: else something else would
// be tested.
func (m *fileProject) mustBeJudged(t *testing.T) {
	t.Helper()
	for _, mode := range []string{"static", "dynamic"} {
		mounts := m.run(t, m.project, shop.sbx, "run", "-q", "--mode", mode, "--prompt", "deny",
			"--", "cat", "/proc/self/mountinfo")
		if !strings.Contains(mounts, " "+m.project+" ro,") {
			t.Fatalf("%s: %s is not mounted read-only:\n%s", mode, m.project, mounts)
		}
	}
}

// hand is one process that carries out lines.
type hand struct {
	in  io.WriteCloser
	out *bufio.Reader
	cmd *exec.Cmd
}

// hand starts one in the project, with what stands before its command.
func (m *fileProject) hand(t *testing.T, before []string) *hand {
	t.Helper()
	cmd := m.command(m.project, append(slices.Clone(before), m.program)...)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	must(t, err)
	out, err := cmd.StdoutPipe()
	must(t, err)
	must(t, cmd.Start())
	h := &hand{in, bufio.NewReader(out), cmd}
	t.Cleanup(h.end)
	return h
}

// do has lines carried out, one after the other, and says what came of each.
func (h *hand) do(lines ...string) (said []string) {
	stuck := time.AfterFunc(time.Minute, func() { _ = h.cmd.Process.Kill() }) // no call may wait for what never comes
	defer stuck.Stop()
	if _, err := io.WriteString(h.in, strings.Join(lines, "\n")+"\n"); err != nil {
		return slices.Repeat([]string{"gone: " + err.Error()}, len(lines))
	}
	for range lines {
		text, err := h.out.ReadString('\n')
		if err != nil {
			text = "gone: " + err.Error()
		}
		said = append(said, strings.TrimSuffix(text, "\n"))
	}
	return said
}

func (h *hand) end() {
	h.in.Close()
	_ = h.cmd.Wait()
}

//go:build linux

package selftest

import (
	"cmp"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sbx.example/sbx/selftest/need"
)

// tree is a project that operations are carried out in.
type tree struct {
	names  int
	hidden bool // a hidden name lies in each directory that is worked in
}

func (k tree) String() string {
	if k.hidden {
		return fmt.Sprintf("%s names, hidden", thousands(k.names))
	}
	return thousands(k.names) + " names"
}

func thousands(n int) string {
	if n < 1000 {
		return fmt.Sprint(n)
	}
	return fmt.Sprintf("%d,%03d", n/1000, n%1000)
}

var sizesOfTrees = [...]int{10, 2000, 50000}

type mode struct {
	name string
	args []string
}

// tries says whether all calls are tried with every kind of name here: they go to a directory of their own, whatever
// the size of the project.
func (k tree) tries() bool {
	return k.names == sizesOfTrees[0] || k.names == sizesOfTrees[2] && everyFileOperation()
}

// everyFileOperation says that nothing is left out that another cell shows as well.
func everyFileOperation() bool { return os.Getenv("SBX_FILES") == "full" }

// modes are the ways to run a sandbox.
var modes = [...]mode{
	{"static", []string{"--static"}},
	{"dynamic", []string{"--mode", "dynamic", "--gate", "gatefs", "--prompt", "deny"}},
	{"notify", []string{"--mode", "dynamic", "--gate", "notify", "--prompt", "deny"}},
}

// position is where A and B are: each letter is the host, the first or the second sandbox.
type position struct{ name, a, b string }

var positions = [...]position{
	{"inside, inside", "1", "1"},
	{"inside, host", "1", "h"},
	{"host, inside", "h", "1"},
	{"two sandboxes", "1", "2"},
}

// cell is one comparison with what happens outside.
type cell struct {
	tree
	mode, position string
	differ         []string // lines of which something else came than outside
}

// TestFileOperations carries the operations of testdata/fileops.txt out in projects of every kind, by processes in
// every position, and compares them with the same outside. What differs must have its reason there, and the page
// that says so must be what is committed.
func TestFileOperations(t *testing.T) {
	t.Parallel()
	needSandbox(t)
	scenarios := readScenarios(t)
	program := fileops(t)
	found := make([][][]cell, 2*len(sizesOfTrees)) // tree, scenario
	t.Run("projects", func(t *testing.T) {
		for i, names := range sizesOfTrees {
			t.Run(thousands(names), func(t *testing.T) {
				t.Parallel()
				p := newFileProject(t, program)
				p.fill(t, names)
				for j, hidden := range []bool{false, true} {
					found[2*i+j] = newMatrix(t, p, tree{names, hidden}, scenarios).all(t)
				}
			})
		}
	})
	cells := make([][]cell, len(scenarios))
	for _, of := range found {
		if of == nil {
			return // one of them has failed, and said why
		}
		for i := range of {
			cells[i] = append(cells[i], of[i]...)
		}
	}
	common := commonReasons(scenarios)
	used := map[string]bool{}
	for i := range scenarios {
		scenarios[i].judge(t, cells[i], used)
	}
	for _, r := range common {
		if !used[r.why] && !r.sometimes {
			t.Errorf("nothing differs any more in any series: %s", r.why)
		}
	}
	comparePage(t, operationsPage(scenarios, cells, common))
}

// judge wants a reason for what differs, and something that differs for each reason.
func (s *scenario) judge(t *testing.T, cells []cell, everUsed map[string]bool) {
	used := make([]bool, len(s.reasons))
	for _, c := range cells {
		var unexplained []string
		for _, line := range c.differ {
			explained := false
			for i, r := range s.reasons {
				if r.covers(c) && r.explains(line) {
					explained, used[i] = true, true
				}
			}
			if !explained {
				unexplained = append(unexplained, line)
			}
		}
		if len(unexplained) > 0 {
			t.Errorf("%s: %s, %s, %s:\n  %s", s.name, c.tree, c.mode, c.position, strings.Join(unexplained, "\n  "))
		}
	}
	var kept []reason
	for i, r := range s.reasons {
		if !used[i] && !r.sometimes && !r.common {
			t.Errorf("%s: nothing differs any more: %s", s.name, r.why)
		}
		if used[i] && !r.sometimes || !r.common {
			kept = append(kept, r)
		}
		everUsed[r.why] = everUsed[r.why] || used[i]
	}
	s.reasons = kept
}

// matrix is one project with everything that was started in it.
type matrix struct {
	tree
	*fileProject
	scenarios []scenario
	hands     map[string]*hand
}

func newMatrix(t *testing.T, p *fileProject, k tree, scenarios []scenario) *matrix {
	t.Helper()
	m := &matrix{tree: k, fileProject: p, scenarios: scenarios, hands: map[string]*hand{}}
	m.prepare(t)
	return m
}

// fill makes names as a project has them: many directories, some files in each.
func (m *fileProject) fill(t *testing.T, names int) {
	t.Helper()
	for i := range names {
		dir := filepath.Join(m.large, fmt.Sprintf("part%d", i/500))
		if i%500 == 0 {
			must(t, os.Mkdir(dir, 0o755))
		}
		must(t, os.WriteFile(filepath.Join(dir, fmt.Sprintf("name%d", i)), nil, 0o644))
	}
	must(t, shop.own(m.home))
}

// prepare makes the directories that are worked in: what lies there when a sandbox starts is part of what is
// compared.
func (m *matrix) prepare(t *testing.T) {
	t.Helper()
	h := m.hand(t, nil)
	for i, w := range m.ways() {
		m.place(t, m.way(i))
		if m.tries() {
			m.place(t, m.way(i)+triedIn)
		}
		for n, s := range m.scenarios {
			if len(s.before) == 0 {
				continue
			}
			dir := m.dir(n, w)
			m.place(t, dir)
			for n, said := range h.do(append([]string{"reset", "chdir " + dir}, s.before...)...) {
				if said != "ok" {
					t.Fatalf("%s: line %d before it: %s", s.name, n-2, said)
				}
			}
		}
	}
}

// way is the directory of one of ways.
func (m *matrix) way(i int) string {
	return filepath.Join(m.large, fmt.Sprintf("%s-way%02d", m.kind(), i))
}

func (k tree) kind() string {
	if k.hidden {
		return "hidden"
	}
	return "plain"
}

// place makes a directory to work in.
func (m *matrix) place(t *testing.T, dir string) {
	t.Helper()
	must(t, os.Mkdir(dir, 0o755))
	if m.hidden {
		must(t, os.WriteFile(filepath.Join(dir, ".env"), []byte("KEY=1\n"), 0o600))
	}
	must(t, shop.own(dir))
}

// ways are the pairs of modes and positions, the first of them outside. In the largest project it is one mode, or
// all with SBX_FILES=full.
func (m *matrix) ways() (out []wayOf) {
	out = append(out, wayOf{-1, position{"outside", "h", "g"}})
	for i, mode := range modes {
		for _, p := range positions {
			if m.names < 50000 || mode.name == "dynamic" || everyFileOperation() {
				out = append(out, wayOf{i, p})
			}
		}
	}
	return out
}

type wayOf struct {
	mode int // index of modes
	position
}

// triedIn ends the name of a way's directory in which calls are tried. One is enough for all of them: it is filled
// anew, and a small project stays small.
const triedIn = "-tried"

// dir is where a scenario is carried out: a new directory in the way's, or one that was there when the sandboxes
// began.
func (m *matrix) dir(scenario int, w wayOf) string {
	i := slices.Index(m.ways(), w)
	place := m.way(i)
	if m.scenarios[scenario].tried {
		return place + triedIn
	}
	if len(m.scenarios[scenario].before) > 0 {
		return fmt.Sprintf("%s-%d", place, scenario)
	}
	return filepath.Join(place, fmt.Sprint(scenario))
}

// who is the process that a position's letter stands for, started when it is first wanted.
func (m *matrix) who(t *testing.T, mode int, letter string) *hand {
	t.Helper()
	key := letter
	if letter == "1" || letter == "2" {
		key = fmt.Sprint(mode, letter)
	}
	if m.hands[key] == nil {
		var before []string
		if key != letter {
			before = append(append([]string{shop.sbx, "run", "-q", "--ro", m.program}, modes[mode].args...), "--")
		}
		m.hands[key] = m.hand(t, before)
	}
	return m.hands[key]
}

// all carries every scenario out, mode by mode, so that few sandboxes stand at once.
func (m *matrix) all(t *testing.T) [][]cell {
	outside := make([][]string, len(m.scenarios))
	out := make([][]cell, len(m.scenarios))
	mode := -1
	for _, w := range m.ways() {
		if w.mode != mode {
			m.leave()
			m.unshut(t)
			mode = w.mode
		}
		for i, s := range m.scenarios {
			if !m.wants(s, w) {
				continue
			}
			got := m.perform(t, i, w)
			if w.name == "outside" {
				outside[i] = got
				continue
			}
			c := cell{tree: m.tree, mode: modes[w.mode].name, position: w.name}
			for n := range got {
				if got[n] != outside[i][n] {
					c.differ = append(c.differ, got[n]+", outside: "+outcomeOf(outside[i][n]))
				}
			}
			out[i] = append(out[i], c)
		}
	}
	return out
}

// unshut gives the rights back that calls have taken off directories. What cannot be looked through when a sandbox
// starts does not exist inside, and what lies around it is guarded: unread.txtar is about that.
func (m *matrix) unshut(t *testing.T) {
	t.Helper()
	must(t, filepath.WalkDir(m.large, func(p string, d fs.DirEntry, err error) error {
		if err != nil || !d.IsDir() {
			return err
		}
		st, err := d.Info()
		if err == nil && st.Mode().Perm()&0o500 != 0o500 {
			err = os.Chmod(p, st.Mode().Perm()|0o700)
		}
		return err
	}))
}

// wants says whether a scenario is to be carried out in a way. One of one process is, where that is inside. Hidden
// names are served by the same program in every mode, so calls are tried with them in one.
func (m *matrix) wants(s scenario, w wayOf) bool {
	switch {
	case s.tried && !m.tries():
		return false
	case w.mode < 0:
		return true // outside
	case m.names == sizesOfTrees[1] && modes[w.mode].name != "notify" && !need.Thorough() && !everyFileOperation():
		return false
	case !s.pair && w.position != positions[0]:
		return false
	case s.tried && m.hidden && modes[w.mode].name != "dynamic" && !everyFileOperation():
		return false
	}
	return true
}

// leave ends the sandboxes.
func (m *matrix) leave() {
	for key, h := range m.hands {
		h.end()
		delete(m.hands, key)
	}
}

func outcomeOf(line string) string { return line[strings.Index(line, " → ")+len(" → "):] }

// linesAtOnce are so few that a process can say what came of them all before anybody reads it.
const linesAtOnce = 40

// perform carries a scenario out, and removes what it has left.
func (m *matrix) perform(t *testing.T, i int, w wayOf) []string {
	t.Helper()
	s, dir := m.scenarios[i], m.dir(i, w)
	if len(s.before) == 0 && !s.tried {
		must(t, os.Mkdir(dir, 0o755))
		must(t, shop.own(dir))
	}
	said := m.carry(t, s, w, dir)
	var out []string
	for i, l := range s.lines {
		words := strings.Split(strings.ReplaceAll(said[i], dir, "."), " ")
		words = slices.DeleteFunc(words, func(w string) bool { return w == ".env" })
		out = append(out, l+" → "+cmp.Or(strings.Join(words, " "), "ok"))
	}
	if !s.tried {
		must(t, os.RemoveAll(dir))
	}
	return out
}

// carry says what came of each line of a scenario in a directory.
func (m *matrix) carry(t *testing.T, s scenario, w wayOf, dir string) []string {
	t.Helper()
	hands := map[byte]*hand{'A': m.who(t, w.mode, w.a), 'B': m.who(t, w.mode, w.b)}
	lines := []string{"A reset", "A chdir " + dir}
	if s.pair {
		lines = append(lines, "B reset", "B chdir "+dir)
	}
	begun := len(lines)
	lines = append(lines, s.lines...)
	var said []string
	for i := 0; i < len(lines); {
		end := i // what one process does in a row is handed to it at once
		for end < len(lines) && lines[end][0] == lines[i][0] && end-i < linesAtOnce {
			end++
		}
		said = append(said, hands[lines[i][0]].do(m.spoken(lines[i:end], w.a == w.b)...)...)
		i = end
	}
	if slices.ContainsFunc(said[:begun], func(s string) bool { return s != "ok" }) {
		t.Fatalf("%s, %s: %v: %v", s.name, w.name, lines[:begun], said[:begun])
	}
	for i, l := range said { // on both sides it would look as if nothing differed
		if strings.HasPrefix(l, "fixture: ") {
			t.Fatalf("%s, %s: %s: %s", s.name, w.name, lines[i], l)
		}
	}
	return said[begun:]
}

// spoken are the lines as a process is told them: its letter is left away, but where one process hands B's on.
func (m *matrix) spoken(lines []string, one bool) (out []string) {
	for _, l := range lines {
		if !one || l[0] == 'A' {
			l = l[2:]
		}
		out = append(out, l)
	}
	return out
}

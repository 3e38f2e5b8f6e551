//go:build linux

package selftest

import (
	"cmp"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// scenario is one part of testdata/fileops.txt.
type scenario struct {
	name    string
	reasons []reason
	before  []string // what the host does before any sandbox starts
	lines   []string
	pair    bool // there are two processes
	tried   bool // its lines are tried in the fixture
}

// reason is why something else comes of a scenario in some cells.
type reason struct {
	words     []string // what a cell must have: of its project, mode and position
	differs   *regexp.Regexp
	sometimes bool // it need not differ: how soon something is seen counts
	common    bool // of every scenario in which a line differs so
	why       string
}

// explains says whether this is why a line differs. Most reasons are about a whole series.
func (r reason) explains(line string) bool { return r.differs == nil || r.differs.MatchString(line) }

func (r reason) covers(c cell) bool {
	for _, w := range r.words {
		if w == "apart" && c.position != positions[0].name {
			continue
		}
		if !slices.Contains([]string{c.mode, c.position, thousands(c.names), c.kind()}, w) {
			return false
		}
	}
	return true
}

// readScenarios reads the tables. "## " begins a scenario; "~ words: reason" says why what comes of it differs,
// where all the words hold, and "~?" that it may; "0 " is a line for the host before any sandbox starts; "A " and
// "B " are lines of the two processes. testdata/posix.txt says what more there is.
func readScenarios(t *testing.T) (out []scenario) {
	t.Helper()
	for _, name := range []string{"testdata/fileops.txt", "testdata/posix.txt"} {
		b, err := os.ReadFile(name)
		must(t, err)
		out = append(out, scenariosOf(t, string(b))...)
	}
	return out
}

func scenariosOf(t *testing.T, text string) (out []scenario) {
	t.Helper()
	var all scenario // what holds for every one
	standsFor := map[string][]string{}
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if name, ok := strings.CutPrefix(line, "## "); ok {
			out = append(out, scenario{name: name, reasons: slices.Clone(all.reasons)})
			continue
		}
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		s := &all
		if len(out) > 0 {
			s = &out[len(out)-1]
		}
		switch line[:2] {
		case "= ":
			words := strings.Fields(line[2:])
			standsFor[words[0]] = words[1:]
		case "~ ", "~?":
			r := readReason(t, line)
			r.common = s == &all
			s.reasons = append(s.reasons, r)
		case "0 ":
			s.before = append(s.before, line[2:])
		case "A ", "B ":
			s.lines, s.pair = append(s.lines, eachOf(line, standsFor)...), s.pair || line[0] == 'B'
			s.tried = s.tried || strings.HasPrefix(line, "A try ")
		default:
			t.Fatalf("whose line is it? %s", line)
		}
	}
	return out
}

// commonReasons are those that hold for every scenario of a table.
func commonReasons(scenarios []scenario) (out []reason) {
	for _, s := range scenarios {
		for _, r := range s.reasons {
			if r.common && !slices.ContainsFunc(out, func(o reason) bool { return o.why == r.why }) {
				out = append(out, r)
			}
		}
	}
	return out
}

func readReason(t *testing.T, line string) reason {
	t.Helper()
	words, why, ok := strings.Cut(line[2:], ": ")
	if !ok {
		t.Fatalf("no reason: %s", line)
	}
	r := reason{sometimes: line[1] == '?', why: why}
	for _, w := range splitWords(words) {
		if pattern, ok := strings.CutPrefix(w, "/"); ok {
			r.differs = regexp.MustCompile(strings.TrimSuffix(pattern, "/"))
			continue
		}
		r.words = append(r.words, w)
	}
	return r
}

// eachOf are the lines that one with placeholders stands for.
func eachOf(line string, standsFor map[string][]string) []string {
	lines := []string{line}
	for mark, words := range standsFor {
		var more []string
		for _, l := range lines {
			if !strings.Contains(l, mark) {
				more = append(more, l)
				continue
			}
			for _, w := range words {
				more = append(more, strings.ReplaceAll(l, mark, w))
			}
		}
		lines = more
	}
	slices.Sort(lines)
	return slices.Compact(lines)
}

// splitWords splits what a reason is about at its semicolons; positions have commas in their names.
func splitWords(s string) (out []string) {
	for w := range strings.SplitSeq(s, ";") {
		if w = strings.TrimSpace(w); w != "everywhere" {
			out = append(out, w)
		}
	}
	return out
}

const pageOfOperations = "../docs/file-operations.md"

func comparePage(t *testing.T, page string) {
	t.Helper()
	if *update {
		must(t, os.WriteFile(pageOfOperations, []byte(page), 0o644))
		return
	}
	b, err := os.ReadFile(pageOfOperations)
	must(t, err)
	if string(b) != page {
		t.Errorf("docs/file-operations.md is another page than comes of the table (go test -update rewrites it)")
	}
}

const pageHead = `# What programs can do to files of a project

Made of ` + "`fileops.txt` and `posix.txt` in `selftest/testdata`" + ` by
` + "`go test ./selftest -run TestFileOperations -update`" + `. The same test carries all of it out,
and fails when something else comes of it than stands here.

Each line of the tables is a series of system calls. Two processes, A and B, make them on the host, and then with one or
both in a sandbox. What each call says is compared, error numbers and events included.

It is done in projects of %s names. In each size there is one with a hidden name (` + "`.env`" + `) in
every directory that is worked in, and one without. Each has sandboxes with ` + "`--static`" + `, in dynamic mode with
gatefs, and with the engine notify. Without ` + "`SBX_THOROUGH=1`" + ` (CI sets it) those of the middle size have
notify alone.

- **=** the same as on the host, call by call, in every project and mode
- **a number** something differs; the list at the end says what, where and why
- **–** the series has one process only

Below "Every name", each call is made with every kind of name: files, directories, pipes and links; those that are
missing, dangle, lead in circles, end with slashes or dots, are too long, or lie where rights are missing. After each
call everything else there is compared as well: names, modes, sizes, links, identities and times. That is %s calls in
the project of 10 names: in each mode without a hidden name, in dynamic mode with one. ` + "`SBX_FILES=full`" + ` adds
the other modes, and all of them in the project of 50,000 names.

`

// operationsPage is docs/file-operations.md.
func operationsPage(scenarios []scenario, cells [][]cell, common []reason) string {
	var b strings.Builder
	sizes := []string{}
	for _, n := range sizesOfTrees {
		sizes = append(sizes, thousands(n))
	}
	tried := 0
	for _, s := range scenarios {
		if s.tried {
			tried += len(s.lines)
		}
	}
	fmt.Fprintf(&b, pageHead, strings.Join(sizes[:len(sizes)-1], ", ")+" and "+sizes[len(sizes)-1], thousands(tried))
	var notes []string
	group := ""
	for i, s := range scenarios {
		of, what, _ := strings.Cut(s.name, ": ")
		if of != group {
			group = of
			fmt.Fprintf(&b, "## %s%s\n\n| calls | %s | %s | %s | %s |\n|---|---|---|---|---|\n", strings.ToUpper(of[:1]), of[1:],
				positions[0].name, positions[1].name, positions[2].name, positions[3].name)
		}
		fmt.Fprintf(&b, "| %s | %s |\n", what, strings.Join(row(s, cells[i], &notes), " | "))
		if i+1 == len(scenarios) || !strings.HasPrefix(scenarios[i+1].name, group+":") {
			b.WriteString("\n")
		}
	}
	b.WriteString("## What differs\n\n")
	for i, note := range notes {
		fmt.Fprintf(&b, "%d. %s\n", i+1, note)
	}
	b.WriteString("\nNow and then, below \"Every name\":\n\n")
	for _, r := range common {
		if r.sometimes {
			fmt.Fprintf(&b, "- %s\n", r.text())
		}
	}
	return b.String()
}

// row is what stands in the four columns of a scenario: the numbers of the reasons that something differs there.
func row(s scenario, cells []cell, notes *[]string) (out []string) {
	for _, p := range positions {
		if !s.pair && p != positions[0] {
			out = append(out, "–")
			continue
		}
		numbers := []string{}
		for _, r := range s.reasons {
			if !slices.ContainsFunc(cells, func(c cell) bool { return c.position == p.name && r.covers(c) }) {
				continue
			}
			i := slices.Index(*notes, r.text())
			if i < 0 {
				i = len(*notes)
				*notes = append(*notes, r.text())
			}
			numbers = append(numbers, fmt.Sprint(i+1))
		}
		out = append(out, cmp.Or(strings.Join(numbers, ", "), "="))
	}
	return out
}

// text is a reason as the page has it. The columns say which positions.
func (r reason) text() string {
	where := []string{}
	for _, w := range r.words {
		switch {
		case w == "apart": // the columns say it
		case w == "hidden":
			where = append(where, "In a directory that has a hidden name")
		case w == "plain":
			where = append(where, "Without hidden names")
		case slices.ContainsFunc(modes[:], func(m mode) bool { return m.name == w }):
			name := map[string]string{"static": "with `--static`", "dynamic": "with gatefs",
				"notify": "with the engine notify"}[w]
			where = append(where, name)
		case !slices.ContainsFunc(positions[:], func(p position) bool { return p.name == w }):
			where = append(where, "in projects of "+w+" names")
		}
	}
	if len(where) == 0 {
		where = []string{"Everywhere"}
	}
	text := strings.Join(where, ", ")
	return strings.ToUpper(text[:1]) + text[1:] + ": " + r.why + "."
}

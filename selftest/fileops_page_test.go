package selftest

import (
	"cmp"
	"fmt"
	"os"
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
}

// reason is why something else comes of a scenario in some cells.
type reason struct {
	words     []string // what a cell must have: of its project, mode and position
	sometimes bool     // it need not differ: how soon something is seen counts
	why       string
}

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

// readScenarios reads the table. "## " begins a scenario; "~ words: reason" says why what comes of it differs,
// where all the words hold, and "~?" that it may; "0 " is a line for the host before any sandbox starts; "A " and
// "B " are lines of the two processes.
func readScenarios(t *testing.T) (out []scenario) {
	t.Helper()
	b, err := os.ReadFile("testdata/fileops.txt")
	must(t, err)
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
		switch line[:2] {
		case "~ ", "~?":
			words, why, ok := strings.Cut(line[2:], ": ")
			if !ok {
				t.Fatalf("no reason: %s", line)
			}
			s.reasons = append(s.reasons, reason{splitWords(words), line[1] == '?', why})
		case "0 ":
			s.before = append(s.before, line[2:])
		case "A ", "B ":
			s.lines, s.pair = append(s.lines, line), s.pair || line[0] == 'B'
		default:
			t.Fatalf("whose line is it? %s", line)
		}
	}
	return out
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

Made of ` + "`selftest/testdata/fileops.txt`" + ` by ` + "`go test ./selftest -run TestFileOperations -update`" + `. The same test carries all of it out, and
fails when something else comes of it than stands here.

Each line of the tables is a series of system calls. Two processes, A and B, make them on the host, and then with one or both in a
sandbox. What each call says is compared, error numbers and events included.

It is done in projects of %s names. In each size there is one with a hidden name (` + "`.env`" + `) in every directory that is worked
in, and one without. Each has sandboxes with ` + "`--static`" + `, in dynamic mode with gatefs, and with the engine notify.

- **=** the same as on the host, call by call, in every project and mode
- **a number** something differs; the list at the end says what, where and why
- **–** the series has one process only

`

// operationsPage is docs/file-operations.md.
func operationsPage(scenarios []scenario, cells [][]cell) string {
	var b strings.Builder
	sizes := []string{}
	for _, n := range sizesOfTrees {
		sizes = append(sizes, thousands(n))
	}
	fmt.Fprintf(&b, pageHead, strings.Join(sizes[:len(sizes)-1], ", ")+" and "+sizes[len(sizes)-1])
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

package command

import (
	"cmp"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"sbx.example/sbx/broker/internal/launch"
	"sbx.example/sbx/broker/internal/prompt"
	"sbx.example/sbx/broker/plan"
)

// What people read is laid out for the terminal that it goes to: lines break between words, tables leave columns out.

// leastColumns is the width of the narrowest terminal that anything is laid out for.
const leastColumns = 24

// columns is how wide a terminal is; 0 where nothing is to be laid out.
func columns(f *os.File) int {
	if f == nil {
		return 0
	}
	if _, n := launch.Size(f); n >= leastColumns {
		return int(n)
	}
	return 0
}

// Say prints the answer to a question for people. What programs read, or files hold, is printed with Print.
func (t *Term) Say(text string) { t.Print(fold(text, columns(t.Std[1]))) }

// fold breaks lines that are longer than a terminal is wide.
func fold(text string, width int) string {
	if width == 0 {
		return text
	}
	var b strings.Builder
	for line := range strings.Lines(text) {
		words := strings.TrimRight(line, "\r\n")
		end := line[len(words):]
		rows := []string{words}
		if len(words) > width {
			rows = foldLine(words, width)
		}
		for _, row := range rows[:len(rows)-1] {
			b.WriteString(strings.TrimRight(row, " ") + cmp.Or(end, "\n"))
		}
		b.WriteString(rows[len(rows)-1] + end)
	}
	return b.String()
}

// foldLine breaks one line. A row of a table goes on under its last column, where half of the terminal is left for it.
// A command that is to be copied begins a row of its own and is not broken, because a break would be pasted with it.
func foldLine(line string, width int) (rows []string) {
	lead := len(line) - len(strings.TrimLeft(line, " "))
	indent := lead + 2
	if at := strings.LastIndex(line[:width/2], gap) + len(gap); at > lead+len(gap) && line[at] != ' ' {
		indent = at
	} else if at := strings.Index(line[lead:width], gap); at > 0 { // a column that begins late: below what is before it
		rest := strings.Repeat(" ", lead+4) + strings.TrimLeft(line[lead+at:], " ")
		return append([]string{line[:lead+at]}, prompt.Wrap(rest, width, lead+4, false)...)
	}
	at := commandIn(line)
	if at < 0 {
		return prompt.Wrap(line, width, indent, false)
	}
	rows = prompt.Wrap(strings.TrimRight(line[:at], " "), width, indent, false)
	return append(rows, strings.Repeat(" ", lead+2)+line[at:])
}

// commandIn is where a command with names in it begins, which goes on to the end of the line; -1 if there is none.
func commandIn(line string) int {
	for _, head := range [...]string{": sbx policy add ", ": sbx why ", "  sbx policy add ", "  sbx run --r"} {
		if at := strings.Index(line, head); at > 0 {
			return at + strings.Index(head, "sbx")
		}
	}
	return -1
}

// Column is one of a table.
type Column struct {
	Head  string
	Width int  // the least, where there is room
	Right bool // as numbers are
	Spare int  // a narrow terminal has no column with the highest number first; 0: it has it always
}

// gap is what parts the columns of a table.
const gap = "  "

// leastLast is what the last column has before others are left out.
const leastLast = 8

// Table lays rows out under their heads, one to each row of the terminal: one that is too narrow has no spare columns,
// and not all of the last.
func (t *Term) Table(heads []Column, rows [][]string) string {
	return table(heads, rows, columns(t.Std[1]))
}

func table(heads []Column, rows [][]string, width int) string {
	sizes := fit(heads, rows, width)
	room := width
	for _, size := range sizes {
		if size > 0 {
			room -= size + len(gap)
		}
	}
	head := make([]string, len(heads))
	for i, h := range heads {
		head[i] = h.Head
	}
	var b strings.Builder
	for _, r := range append([][]string{head}, rows...) {
		for i, size := range sizes {
			switch pad := strings.Repeat(" ", max(size-len(r[i]), 0)); {
			case size == 0:
			case heads[i].Right:
				b.WriteString(pad + r[i] + gap)
			default:
				b.WriteString(r[i] + pad + gap)
			}
		}
		text := r[len(sizes)]
		if most := max(room, leastLast); width > 0 && len(text) > most {
			text = text[:most-len("...")] + "..."
		}
		b.WriteString(text + "\n")
	}
	return b.String()
}

// Records is a table of which nothing is cut. A terminal that is too narrow for it, also without the last column, has a
// paragraph for each row.
func (t *Term) Records(heads []Column, rows [][]string) string {
	return records(heads, rows, columns(t.Std[1]))
}

func records(heads []Column, rows [][]string, width int) string {
	for n := len(heads); n >= len(heads)-1; n-- {
		text := table(heads[:n], rows, 0)
		wide := func(line string) bool { return len(line) > width }
		if width == 0 || !slices.ContainsFunc(strings.Split(text, "\n"), wide) {
			return text
		}
	}
	margin := 0
	for _, h := range heads[1:] {
		margin = max(margin, len(h.Head))
	}
	var b strings.Builder
	for _, r := range rows {
		b.WriteString(r[0] + "\n")
		for i, h := range heads[1:] {
			fmt.Fprintf(&b, "%s%-*s%s%s\n", gap, margin, strings.ToLower(h.Head), gap, r[i+1])
		}
	}
	return fold(b.String(), width)
}

// fit says how wide each column but the last is, 0 where it is left out.
func fit(heads []Column, rows [][]string, width int) []int {
	sizes, before := make([]int, len(heads)-1), 0
	for i := range sizes {
		sizes[i] = max(len(heads[i].Head), heads[i].Width)
		for _, r := range rows {
			sizes[i] = max(sizes[i], len(r[i]))
		}
		before += sizes[i] + len(gap)
	}
	for width > 0 && before+leastLast > width {
		most := 0
		for i, h := range heads[:len(sizes)] {
			if sizes[i] > 0 && (sizes[most] == 0 || h.Spare > heads[most].Spare) {
				most = i
			}
		}
		if heads[most].Spare == 0 {
			break
		}
		before -= sizes[most] + len(gap)
		sizes[most] = 0
	}
	return sizes
}

// Short is a directory as people write it.
func Short(dir plan.Bytes, home string) string {
	if rest, below := strings.CutPrefix(string(dir), home); below && home != "" && (rest == "" || rest[0] == '/') {
		if rest == "" {
			return "~"
		}
		return "~" + plan.Bytes(rest).Quote()
	}
	return dir.Quote()
}

// Age is a time that has passed, in one unit.
func Age(d time.Duration) string {
	switch {
	case d < time.Minute:
		return fmt.Sprintf("%ds", int(max(d, 0).Seconds()))
	case d < time.Hour:
		return fmt.Sprintf("%dm", int(d.Minutes()))
	case d < 48*time.Hour:
		return fmt.Sprintf("%dh", int(d.Hours()))
	}
	return fmt.Sprintf("%dd", int(d.Hours()/24))
}

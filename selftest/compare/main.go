//go:build linux

// Command compare holds the results of one test suite outside of the sandbox against those inside, test by test:
//
//	compare [-page FILE] [-slow N] OUTSIDE INSIDE
//
// Both are streams of `go test -json`, or JUnit XML as `python3 -m test --junit-xml` writes it. It prints every test
// whose result differs, with what the side that is worse says about it. It exits with 1 when a table of the page has no
// row for one of them, by its name or by what it says: the page is the list of explained differences. It must not call
// a run equal that did not happen: a file without results is an error.
package main

import (
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
)

func main() {
	page := flag.String("page", "", "`FILE` whose tables explain differences, by name or reason; * is anything")
	slow := flag.Float64("slow", 0, "also name tests that take `N` seconds more inside, and three times as long")
	flag.Parse()
	if flag.NArg() != 2 {
		fmt.Fprintln(os.Stderr, "usage: compare [-page FILE] [-slow N] OUTSIDE INSIDE")
		os.Exit(2)
	}
	open, err := run(os.Stdout, *page, *slow, flag.Arg(0), flag.Arg(1))
	if err != nil {
		fmt.Fprintln(os.Stderr, "compare:", err)
		os.Exit(2)
	}
	if open > 0 {
		os.Exit(1)
	}
}

// run returns how many differences nothing explains.
func run(w io.Writer, page string, slow float64, outside, inside string) (int, error) {
	out, err := readResults(outside)
	if err != nil {
		return 0, err
	}
	in, err := readResults(inside)
	if err != nil {
		return 0, err
	}
	var rows []string
	if page != "" {
		if rows, err = explained(page); err != nil {
			return 0, err
		}
	}
	fmt.Fprintf(w, "outside: %s\ninside:  %s\n", count(out), count(in))
	open := differences(w, rows, out, in)
	if slow > 0 {
		slower(w, slow, out, in)
	}
	return open, nil
}

// differences prints the tests whose results differ, and counts those that no row explains.
func differences(w io.Writer, rows []string, out, in results) int {
	open, known := 0, 0
	for _, name := range names(out, in) {
		o, i := out[name], in[name]
		if o.verdict == i.verdict {
			continue
		}
		why := i.why
		if i.verdict == passed {
			why = o.why
		}
		mark := "differs"
		if slices.ContainsFunc(rows, func(row string) bool { return like(row, name) || like(row, why) }) {
			mark = "explained"
			known++
		} else {
			open++
		}
		fmt.Fprintf(w, "%s\t%s\t%v -> %v\t%s\n", mark, name, o.verdict, i.verdict, why)
	}
	fmt.Fprintf(w, "%d explained, %d not\n", known, open)
	return open
}

// like says whether the text is the pattern, in which * stands for anything.
func like(pattern, text string) bool {
	parts := strings.Split(pattern, "*")
	last := len(parts) - 1
	if last == 0 {
		return pattern == text
	}
	if !strings.HasPrefix(text, parts[0]) {
		return false
	}
	text = text[len(parts[0]):]
	for _, part := range parts[1:last] {
		at := strings.Index(text, part)
		if at < 0 {
			return false
		}
		text = text[at+len(part):]
	}
	return strings.HasSuffix(text, parts[last])
}

// slower prints the tests for which the sandbox makes a difference that somebody waits for.
func slower(w io.Writer, least float64, out, in results) {
	for _, name := range names(out, in) {
		o, i := out[name], in[name]
		if o.verdict != absent && i.verdict != absent && i.seconds > o.seconds+least && i.seconds > 3*o.seconds {
			fmt.Fprintf(w, "slower\t%s\t%.2fs -> %.2fs\n", name, o.seconds, i.seconds)
		}
	}
}

// names are all that have a result on one of the sides.
func names(out, in results) []string {
	all := maps.Clone(out)
	maps.Copy(all, in)
	return slices.Sorted(maps.Keys(all))
}

func count(r results) string {
	n := map[verdict]int{}
	for _, t := range r {
		n[t.verdict]++
	}
	return fmt.Sprintf("%d tests, %d pass, %d skip, %d fail", len(r), n[passed], n[skipped], n[failed])
}

// explained reads what stands in code spans in the first cells of a page's tables: names of tests, or what they say.
func explained(page string) ([]string, error) {
	text, err := os.ReadFile(page)
	if err != nil {
		return nil, fmt.Errorf("reading the explanations: %w", err)
	}
	var rows []string
	for line := range strings.Lines(string(text)) {
		cells := strings.Split(line, "|")
		if len(cells) < 3 || strings.TrimSpace(cells[0]) != "" {
			continue
		}
		for n, span := range strings.Split(cells[1], "`") {
			if n%2 == 1 {
				rows = append(rows, span)
			}
		}
	}
	return rows, nil
}

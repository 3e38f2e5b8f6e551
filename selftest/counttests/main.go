// Command counttests runs `go test -json` and prints what a person wants of it: a line for each package, the output
// of what failed, the names of what was skipped and why, and last
//
//	why PACKAGE TEST: the line that says it, of each that failed
//	N passed, N failed, N skipped
//
//	counttests [-rerun] [-slow N] go test -json ./...
//
// It exits with 1 when something failed or nothing ran. With -rerun a single failed test is run once more, alone, when
// all the others have ended; one that passes then counts as passed and is named in a line of its own ("flaky"), with
// what it said when it failed. Two failures are no accident, and nothing is run again. With -slow the tests that took
// longest are named. With go test -cover the line of a package has the share of its statements that ran.
package main

import (
	"bufio"
	"cmp"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
)

func main() {
	again := flag.Bool("rerun", false, "run a single failed test once more")
	slow := flag.Int("slow", 0, "name the `N` tests that took longest")
	flag.Parse()
	c := newCounter(os.Stdout)
	c.run(exec.Command(flag.Arg(0), flag.Args()[min(1, flag.NArg()):]...))
	if *again {
		c.rerun(runAlone)
	}
	c.slowest(*slow)
	c.close()
	if c.counts[failed] > 0 || c.counts[passed] == 0 {
		os.Exit(1)
	}
}

// run takes in what cmd prints. A command that fails without a failed test has not tested everything.
func (c *counter) run(cmd *exec.Cmd) {
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err == nil {
		err = c.read(out)
		if e := cmd.Wait(); err == nil && c.counts[failed] == 0 {
			err = e
		}
	}
	if err != nil {
		fmt.Fprintf(c.out, "FAIL %s: %v\n", strings.Join(cmd.Args, " "), err)
		c.counts[failed]++
	}
}

// event is one line of the stream (go doc test2json).
type event struct {
	Action, Package, Test, Output, ImportPath string
	Elapsed                                   float64
}

type key struct{ pkg, test string }

const (
	passed = iota
	failed
	skipped
	kinds
)

type counter struct {
	out    io.Writer
	counts [kinds]int
	texts  map[key][]string
	failed map[string]bool // packages with a failed test
	lost   []key           // what failed, in order; Test is empty for a package that ended outside a test
	rest   []string        // what did not compile
	took   []duration
	why    []string // what failed, and the line that says why
}

type duration struct {
	key
	seconds float64
}

func newCounter(out io.Writer) *counter {
	return &counter{out: out, texts: map[key][]string{}, failed: map[string]bool{}}
}

func (c *counter) read(r io.Reader) error {
	lines := bufio.NewReader(r)
	for {
		line, err := lines.ReadString('\n')
		if strings.TrimSpace(line) != "" {
			var e event
			if json.Unmarshal([]byte(line), &e) != nil {
				fmt.Fprint(c.out, line) // go itself, on a broken tree
			} else {
				c.take(e)
			}
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return fmt.Errorf("reading the stream: %w", err)
		}
	}
}

func (c *counter) take(e event) {
	k := key{e.Package, e.Test}
	switch e.Action {
	case "output":
		c.texts[k] = append(c.texts[k], e.Output)
	case "build-output":
		c.rest = append(c.rest, e.Output)
	case "pass", "fail", "skip":
		if e.Test == "" {
			c.endPackage(e)
		} else {
			c.endTest(e)
		}
		delete(c.texts, k)
	}
}

func (c *counter) endTest(e event) {
	c.took = append(c.took, duration{key{e.Package, e.Test}, e.Elapsed})
	text := strings.Join(c.texts[key{e.Package, e.Test}], "")
	switch e.Action {
	case "pass":
		c.counts[passed]++
	case "skip":
		c.counts[skipped]++
		fmt.Fprintf(c.out, "skip %s %s\n%s", e.Package, e.Test, indent(text))
	case "fail":
		c.counts[failed]++
		c.failed[e.Package] = true
		c.lost = append(c.lost, key{e.Package, e.Test})
		fmt.Fprintf(c.out, "FAIL %s %s\n%s", e.Package, e.Test, indent(text))
		if line := reason(c.texts[key{e.Package, e.Test}]); line != "" {
			c.why = append(c.why, fmt.Sprintf("%s %s: %s", e.Package, e.Test, line))
		}
	}
}

// reason is the first line that says why a test failed: testscript's, or one of the test's own file; "" for a test
// that failed because a subtest did.
func reason(said []string) string {
	for _, line := range said {
		line = strings.TrimSpace(line)
		file, _, own := strings.Cut(line, "_test.go:")
		if strings.HasPrefix(line, "FAIL: ") || own && !strings.Contains(file, " ") {
			return line
		}
	}
	return ""
}

func (c *counter) endPackage(e event) {
	if e.Action == "fail" && !c.failed[e.Package] { // did not build, or ended outside a test
		c.counts[failed]++
		c.lost = append(c.lost, key{e.Package, ""})
		for k, text := range c.texts { // tests that were running when it ended
			if k.pkg == e.Package && k.test != "" {
				fmt.Fprintf(c.out, "FAIL %s %s did not end\n%s", k.pkg, k.test, indent(strings.Join(text, "")))
			}
		}
		fmt.Fprint(c.out, indent(strings.Join(c.rest, "")+strings.Join(c.texts[key{e.Package, ""}], "")))
		c.rest = nil
	}
	word := map[string]string{"pass": "ok  ", "fail": "FAIL", "skip": "none"}[e.Action]
	if e.Action != "skip" {
		fmt.Fprintf(c.out, "%s %s %.1fs%s\n", word, e.Package, e.Elapsed, coverage(c.texts[key{e.Package, ""}]))
	}
}

// coverage is what go test -cover has said of a package, for its line.
func coverage(said []string) string {
	for _, line := range said {
		if share, ok := strings.CutPrefix(line, "coverage: "); ok && !strings.HasPrefix(share, "[") {
			return ", covers " + strings.TrimSuffix(share, " of statements\n")
		}
	}
	return ""
}

// slowest names the n tests that took longest. A test with subtests is not one: it waits for them.
func (c *counter) slowest(n int) {
	above := map[key]bool{}
	for _, d := range c.took {
		for i, r := range d.test {
			if r == '/' {
				above[key{d.pkg, d.test[:i]}] = true
			}
		}
	}
	c.took = slices.DeleteFunc(c.took, func(d duration) bool { return above[d.key] })
	slices.SortFunc(c.took, func(a, b duration) int { return cmp.Compare(b.seconds, a.seconds) })
	for _, d := range c.took[:min(n, len(c.took))] {
		fmt.Fprintf(c.out, "slow %s %s %.1fs\n", d.pkg, d.test, d.seconds)
	}
}

// indent leaves out the stream's own marks.
func indent(text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		if !strings.HasPrefix(line, "=== ") {
			b.WriteString("    " + line)
		}
	}
	return b.String()
}

func (c *counter) close() {
	for _, line := range c.why {
		fmt.Fprintln(c.out, "why", line)
	}
	fmt.Fprintf(c.out, "%d passed, %d failed, %d skipped\n", c.counts[passed], c.counts[failed], c.counts[skipped])
}

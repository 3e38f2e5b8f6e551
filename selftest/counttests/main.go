// Command counttests reads the stream of `go test -json` and prints what a person wants of it: a line
// for each package, the output of what failed, the names of what was skipped and why, and last
//
//	N passed, N failed, N skipped
//
// It exits with 1 when something failed or nothing ran. With -rerun N, up to N failed tests are run once
// more, alone, when all the others have ended: on a small machine that runs packages side by side a wait
// can end too early. One that passes then counts as passed and is named in a line of its own ("flaky"),
// with what it said when it failed; more failures than N are no accident, and nothing is run again.
package main

import (
	"bufio"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"
)

func main() {
	again := flag.Int("rerun", 0, "how many failed tests may be run once more")
	flag.Parse()
	c := newCounter(os.Stdout)
	if err := c.read(os.Stdin); err != nil {
		fmt.Fprintln(os.Stderr, "counttests:", err)
		c.counts[failed]++
	}
	c.rerun(*again, runAlone)
	c.close()
	if c.counts[failed] > 0 || c.counts[passed] == 0 {
		os.Exit(1)
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
	}
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
		fmt.Fprintf(c.out, "%s %s %.1fs\n", word, e.Package, e.Elapsed)
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
	fmt.Fprintf(c.out, "%d passed, %d failed, %d skipped\n", c.counts[passed], c.counts[failed], c.counts[skipped])
}

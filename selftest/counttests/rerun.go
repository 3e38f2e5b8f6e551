package main

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
)

// rerun gives the one failed test a second run, by calling run with the package and the pattern for -run. A test
// that failed because a subtest did counts as that.
func (c *counter) rerun(run func(pkg, pattern string) (io.Reader, error)) {
	leaves := leaves(c.lost)
	// two; or it did not compile, crashed or hung
	if len(leaves) != 1 || leaves[0].test == "" || c.counts[failed] != len(c.lost) {
		return
	}
	k := leaves[0]
	out, err := run(k.pkg, pattern(k.test))
	if err != nil {
		fmt.Fprintf(c.out, "FAIL %s %s could not be run again: %v\n", k.pkg, k.test, err)
		return
	}
	second := newCounter(c.out)
	if err := second.read(out); err != nil || second.counts[failed] > 0 || second.counts[passed] == 0 {
		return
	}
	fmt.Fprintf(c.out, "flaky %s %s passed when it was run again alone\n", k.pkg, k.test)
	c.counts[passed] += c.counts[failed]
	c.counts[failed], c.why = 0, nil
}

// leaves leaves out the tests that failed because a subtest did.
func leaves(lost []key) []key {
	return slices.DeleteFunc(slices.Clone(lost), func(k key) bool {
		return k.test != "" && slices.ContainsFunc(lost, func(l key) bool {
			return l.pkg == k.pkg &&
				strings.HasPrefix(l.test, k.test+"/")
		})
	})
}

// pattern is the value of -run that selects one test.
func pattern(test string) string {
	parts := strings.Split(test, "/")
	for i, p := range parts {
		parts[i] = "^" + regexp.QuoteMeta(p) + "$"
	}
	return strings.Join(parts, "/")
}

func runAlone(pkg, pattern string) (io.Reader, error) {
	cmd := exec.Command("go", "test", "-json", "-count=1", "-timeout=10m", "-run", pattern, pkg)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	return out, cmd.Start()
}

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

// rerun gives up to most failed tests a second run, one by one, by calling run with the package and the
// pattern for -run. A test with failed subtests is run again by those alone, and counts as they do.
func (c *counter) rerun(most int, run func(pkg, pattern string) (io.Reader, error)) {
	leaves := leaves(c.lost)
	if len(leaves) == 0 || len(leaves) > most {
		return
	}
	good := map[key]bool{}
	for _, k := range leaves {
		if k.test == "" { // did not compile, crashed or hung: no accident
			continue
		}
		out, err := run(k.pkg, pattern(k.test))
		if err != nil {
			fmt.Fprintf(c.out, "FAIL %s %s could not be run again: %v\n", k.pkg, k.test, err)
			continue
		}
		second := newCounter(c.out)
		if err := second.read(out); err == nil && second.counts[failed] == 0 && second.counts[passed] > 0 {
			good[k] = true
			fmt.Fprintf(c.out, "flaky %s %s passed when it was run again alone\n", k.pkg, k.test)
		}
	}
	for _, k := range c.lost {
		// a parent is well when all that failed below it is
		well := true
		for _, l := range leaves {
			if l == k || l.pkg == k.pkg && strings.HasPrefix(l.test, k.test+"/") {
				well = well && good[l]
			}
		}
		if well {
			c.counts[failed]--
			c.counts[passed]++
		}
	}
}

// leaves leaves out the tests that failed because a subtest did.
func leaves(lost []key) []key {
	return slices.DeleteFunc(slices.Clone(lost), func(k key) bool {
		return k.test != "" && slices.ContainsFunc(lost, func(l key) bool { return l.pkg == k.pkg && strings.HasPrefix(l.test, k.test+"/") })
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

//go:build linux

package gate

import "testing"

// A program may look for what does not exist inside before the broker has heard that it runs: that is on record too.
func TestEarlyReportsAreKept(t *testing.T) {
	g := newGrounds(nil)
	got := ""
	g.report(func() { got += "a" })
	g.report(func() { got += "b" })
	if got != "" {
		t.Errorf("reported %q before there was anybody to report to", got)
	}
	g.open()
	g.report(func() { got += "c" })
	if got != "abc" {
		t.Errorf("reported %q, want abc", got)
	}
}

//go:build linux

package live

import (
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
)

// TestNobodyWaitsForWhoReads: who says a line goes on although nobody reads, and so does the end. What is read later is
// in order, with what was left out counted where it would be. A reader is the control.
func TestNobodyWaitsForWhoReads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var read []string
		reads := make(chan struct{})
		tell := teller{print: func(line string) {
			<-reads
			read = append(read, line)
		}}
		var want []string
		say := func(n int) {
			for i := range n {
				line := fmt.Sprint("line ", i)
				want = append(want, line)
				tell.say(line)
			}
		}
		say(1)
		synctest.Wait() // it is about to be printed
		say(maxTold)
		for range 3 {
			tell.say("too many")
		}
		tell.end()
		if len(read) > 0 {
			t.Errorf("nobody reads, and %q was printed", read)
		}
		close(reads)
		tell.end()
		want = append(want, "3 more lines were left out here: sbx watch --once lists the questions that wait, and sbx "+
			"audit all")
		if !slices.Equal(read, want) {
			t.Errorf("read %q, want %q", read, want)
		}
		say(2)
		tell.end()
		if !slices.Equal(read, want) {
			t.Errorf("control: read %q, want %q", read, want)
		}
	})
}

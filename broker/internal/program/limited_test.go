package program

import (
	"os/exec"
	"testing"
)

// TestLimited: of what a program says no more than the limit is kept, and the program ends all the same.
func TestLimited(t *testing.T) {
	for words, over := range map[string]bool{"": false, "abcd": false, "abcde": true} {
		l := &Limited{Left: 4}
		cmd := exec.Command("printf", words)
		cmd.Stdout = l
		if err := cmd.Run(); err != nil || l.String() != words[:min(len(words), 4)] || l.Over != over {
			t.Errorf("of %q: %q, more: %t, %v", words, l, l.Over, err)
		}
	}
	l := &Limited{Left: 4}
	cmd := exec.Command("head", "-c", "1000000", "/dev/zero")
	cmd.Stdout = l
	if err := cmd.Run(); err != nil || len(l.String()) != 4 || !l.Over {
		t.Errorf("%d bytes were kept, more: %t, %v", len(l.String()), l.Over, err)
	}
}

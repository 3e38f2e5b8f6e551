//go:build linux

package child

import "testing"

func TestExecutedReadsTheFlags(t *testing.T) {
	for line, want := range map[string]bool{
		"7 (sh) S 1 7 7 0 -1 4194560 120 0":     true,
		"7 (sbx) S 1 7 7 0 -1 4194624 120 0":    false, // PF_FORKNOEXEC
		"7 (a) S 1) R 1 7 7 0 -1 4194560 120 0": true,  // the name may hold anything
		"7 (a) S 1) R 1 7 7 0 -1 4194624 120 0": false,
		"7 (sh) S 1 7 7 0 -1":                   false,
		"7 (sh) S 1 7 7 0 -1 flags 120 0":       false,
		"":                                      false,
	} {
		if got := executed([]byte(line)); got != want {
			t.Errorf("executed(%q) = %v, want %v", line, got, want)
		}
	}
}

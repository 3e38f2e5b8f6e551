//go:build linux

package launch

import "testing"

// TestSupported: versions that have all words that are used, and nothing that is no version of bubblewrap's.
func TestSupported(t *testing.T) {
	for says, want := range map[string]bool{"bubblewrap 0.6.0\n": true, "bubblewrap 0.11.0\n": true,
		"bubblewrap 1.0":     true,
		"bubblewrap 0.5.0\n": false, "bubblewrap": false, "bubblewrap 0": false, "0.8.0": false, "bubblewrap x.y": false,
		"": false} {
		if supported(says) != want {
			t.Errorf("%q: %t", says, !want)
		}
	}
}

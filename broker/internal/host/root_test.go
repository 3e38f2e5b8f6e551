package host

import "testing"

// TestWithoutRoot: only where root has no number of its own may it be behind the overflow id.
func TestWithoutRoot(t *testing.T) {
	for ids, want := range map[string]bool{
		"         0          0 4294967295\n": false, // no namespace
		"1000 1000 1\n":                      true,  // unshare -U --map-current-user
		"0 1000 1\n":                         true,  // unshare -Ur
		"0 1000 1\n1 100000 65536\n":         true,  // a rootless container
		"1000 0 1\n":                         false, // below that one
		"1 100000 65536\n65537 0 1\n":        false,
	} {
		if withoutRoot(ids) != want {
			t.Errorf("%q: %v", ids, !want)
		}
	}
	if OfRoot(1000) || !OfRoot(0) {
		t.Error("ids that have a number")
	}
}

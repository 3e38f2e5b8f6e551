//go:build linux

package launch

import (
	"os"
	"testing"

	"kernel.org/pub/linux/libs/security/libcap/cap"

	"sbx.example/sbx/selftest/need"
)

// A file's capability makes a helper for the network only if it is the right one.
func TestPermitsNetAdmin(t *testing.T) {
	need.Root(t, "setting capabilities of a file")
	file := t.TempDir() + "/helper"
	if err := os.WriteFile(file, nil, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		caps string
		want bool
	}{{"", false}, {"cap_net_raw=ep", false}, {"cap_net_admin=i", false}, {"cap_net_admin=p", true},
		{"cap_net_admin=ep", true}, {"cap_net_raw,cap_net_admin=ep", true}} {
		if c.caps != "" {
			set, err := cap.FromText(c.caps)
			if err == nil {
				err = set.SetFile(file)
			}
			if err != nil {
				t.Fatal(c.caps, err)
			}
		}
		if got := permitsNetAdmin(file); got != c.want {
			t.Errorf("%q: %v, want %v", c.caps, got, c.want)
		}
	}
}

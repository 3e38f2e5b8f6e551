package host

import "testing"

// TestProcCovered: one proc that nothing covers is enough, and what stands on a directory that is always empty covers
// nothing.
func TestProcCovered(t *testing.T) {
	proc, more := Mount{Root: "/", Point: "/proc", Type: "proc"}, Mount{Root: "/", Point: "/spare", Type: "proc"}
	keys := Mount{Root: "/null", Point: "/proc/keys", Type: "devtmpfs"}
	for _, c := range []struct {
		what    string
		mounts  []Mount
		covered bool
	}{
		{"none", nil, true},
		{"a whole one", []Mount{proc}, false},
		{"as an engine mounts it", []Mount{proc, keys}, true},
		{"a second, as in a sandbox with --nested", []Mount{proc, keys, more}, false},
		{"what systemd mounts", []Mount{proc, {Point: "/proc/sys/fs/binfmt_misc", Type: "autofs"}}, false},
		{"a part of it alone", []Mount{{Root: "/fs", Point: "/proc/fs", Type: "proc"}}, true},
		{"beside it", []Mount{proc, {Point: "/process", Type: "tmpfs"}}, false},
	} {
		if got := (Facts{Mounts: c.mounts}).ProcCovered(); got != c.covered {
			t.Errorf("%s: %t, want %t", c.what, got, c.covered)
		}
	}
}

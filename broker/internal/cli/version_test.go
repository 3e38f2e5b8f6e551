package cli

import (
	"runtime/debug"
	"testing"
)

func TestVersion(t *testing.T) {
	revision := []debug.BuildSetting{{Key: "vcs", Value: "git"}, {Key: "vcs.revision", Value: "0123456789abcdef"}}
	for _, c := range []struct {
		name  string
		build *debug.BuildInfo
		want  string
	}{
		{"nothing is known", nil, Version},
		{"go install", &debug.BuildInfo{Main: debug.Module{Version: "v1.2.3"}}, "1.2.3"},
		{"go install of what has no tag", &debug.BuildInfo{Main: debug.Module{Version: "v0.0.0-2026-0123456789ab"}},
			"0.0.0-2026-0123456789ab"},
		{"a checkout without a tag", &debug.BuildInfo{Main: debug.Module{Version: "v0.0.0-2026-01"}, Settings: revision},
			Version + " (revision 0123456789ab)"},
		{"a checkout", &debug.BuildInfo{Main: debug.Module{Version: "(devel)"}, Settings: revision},
			Version + " (revision 0123456789ab)"},
		{"-buildvcs=false", &debug.BuildInfo{Main: debug.Module{Version: "(devel)"}}, Version},
	} {
		if got := version(c.build); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

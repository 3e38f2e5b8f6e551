//go:build linux

package writes

import (
	"testing"

	"golang.org/x/sys/unix"

	"sbx.example/sbx/broker/internal/guard"
)

func BenchmarkJudge(b *testing.B) {
	rules, err := guard.NewJudge(guard.BuiltIn())
	if err != nil {
		b.Fatal(err)
	}
	dir, err := unix.Open(b.TempDir(), unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		b.Fatal(err)
	}
	g := judge{root: rules.Root(), session: &guard.Session{}, tree: dir, places: map[string]*guard.Place{}}
	for b.Loop() {
		g.rule(&name{rel: "src/lib/deep/file.go\x00"})
	}
}

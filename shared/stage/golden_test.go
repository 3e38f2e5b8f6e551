//go:build linux

package stage

import (
	"flag"
	"testing"

	"sbx.example/sbx/selftest/plans"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// The tape of the helper's stays what it is, instruction by instruction and byte by byte.
func TestTape(t *testing.T) {
	tp := plans.NewTape()
	c := &Compiler{Setup: plans.ForHelper().Setup(), T: tp, d: &direct{12, 13, 14, 1000, 100}}
	if err := c.Build(9, Stdio{-1, 1, 2}); err != nil {
		t.Fatal(err)
	}
	plans.Golden(t, "helper", tp, *update)
}

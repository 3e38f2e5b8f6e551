//go:build linux

package netns

import (
	"flag"
	"testing"

	"golang.org/x/sys/unix"

	"sbx.example/sbx/selftest/plans"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// The tape of a socket stays what it is.
func TestTape(t *testing.T) {
	tp := plans.NewTape()
	(&Socket{Family: unix.AF_INET, Type: unix.SOCK_STREAM, Options: [][3]int{{1, 2, 3}}, Backlog: 4}).Compile(tp)
	plans.Golden(t, "socket", tp, *update)
}

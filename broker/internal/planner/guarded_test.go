package planner

import (
	"fmt"
	"strings"
	"testing"
)

func TestWorthBinding(t *testing.T) {
	many := func(n, size int) (out []plainDir) {
		for i := range n {
			out = append(out, plainDir{fmt.Sprintf("/p/d%03d", i), size})
		}
		return out
	}
	for name, c := range map[string]struct {
		in   []plainDir
		want int
	}{
		"none":                 {nil, 0},
		"small project":        {many(14, 100), 0},
		"one large directory":  {append(many(10, 100), plainDir{"/p/large", bigEnough}), 1},
		"many small ones":      {many(200, 100), 186}, // what is left is below bigEnough
		"more than there may":  {many(600, 100), maxBound},
		"empty ones":           {many(300, 0), 0},
		"just below the bound": {[]plainDir{{"/p/a", bigEnough - 1}}, 0},
	} {
		if got := worthBinding(c.in); len(got) != c.want {
			t.Errorf("%s: %d, want %d", name, len(got), c.want)
		}
	}
	got := worthBinding([]plainDir{{"/p/z", bigEnough}, {"/p/b", 10}, {"/p/a", bigEnough}})
	if s := strings.Join(got, " "); s != "/p/a /p/z" {
		t.Errorf("got %s, want the large ones in the order of their paths", s)
	}
}

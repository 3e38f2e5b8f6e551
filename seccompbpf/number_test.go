package seccompbpf

import (
	"testing"
)

var arches = []Arch{AMD64, ARM64, I386, ARM}

func TestNumbers(t *testing.T) {
	for _, a := range arches {
		names, order, _ := table(a)
		if len(names) < 300 || len(order) != len(names) {
			t.Fatalf("%s: %d names, %d indices", a, len(names), len(order))
		}
		seen := map[uint32]string{}
		for i, s := range names {
			if i > 0 && names[i-1].name >= s.name {
				t.Errorf("%s: %s is not sorted", a, s.name)
			}
			if other, ok := seen[s.nr]; ok {
				t.Errorf("%s: %s and %s share %d, rules by name would be ambiguous", a, s.name, other, s.nr)
			}
			seen[s.nr] = s.name
			if n, ok := Number(a, s.name); !ok || n != int(s.nr) {
				t.Errorf("%s: Number(%s) = %d, %t", a, s.name, n, ok)
			}
			if Name(a, int(s.nr)) != s.name {
				t.Errorf("%s: Name(%d) = %s, want %s", a, s.nr, Name(a, int(s.nr)), s.name)
			}
		}
		for i := 1; i < len(order); i++ {
			if names[order[i-1]].nr >= names[order[i]].nr {
				t.Errorf("%s: order at %d", a, i)
			}
		}
	}
	for _, c := range []struct {
		a    Arch
		name string
		nr   int
	}{{AMD64, "openat", 257}, {ARM64, "openat", 56}, {I386, "socketcall", 102}, {ARM, "arm_set_tls", 0xf0005}} {
		if n, _ := Number(c.a, c.name); n != c.nr {
			t.Errorf("%s %s = %d, want %d", c.a, c.name, n, c.nr)
		}
	}
	if _, ok := Number(ARM64, "open"); ok || Name(AMD64, 9999) != "" || Name(AMD64, -1) != "" {
		t.Error("unknown names or numbers are found")
	}
}

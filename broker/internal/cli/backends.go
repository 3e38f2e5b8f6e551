package cli

import (
	"fmt"
	"strings"
)

// backend is one way of holding a program, see docs/backends.md.
type backend struct {
	Name  string `json:"name"`
	Here  bool   `json:"here"`          // it can be had
	Auto  bool   `json:"auto"`          // it is what sandbox.backend = auto takes here
	Holds string `json:"holds"`         // what it does
	Lacks string `json:"lacks"`         // what of the rest it does not; "" for nothing
	Why   string `json:"why,omitempty"` // it cannot be had
}

// backendsText is the table.
func backendsText(list []backend) string {
	var b strings.Builder
	b.WriteString("backends, and which of them sandbox.backend = auto takes here:\n")
	for _, x := range list {
		here := "no"
		switch {
		case x.Auto:
			here = "auto"
		case x.Here:
			here = "yes"
		}
		fmt.Fprintf(&b, "  %-12s %-5s holds: %s\n", x.Name, here, x.Holds)
		if x.Lacks != "" {
			fmt.Fprintf(&b, "  %-12s %-5s lacks: %s\n", "", "", x.Lacks)
		}
		if x.Why != "" {
			fmt.Fprintf(&b, "  %-12s %-5s why not: %s\n", "", "", x.Why)
		}
	}
	return b.String() + "\n"
}

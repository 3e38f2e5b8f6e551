//go:build linux

package doors

import (
	"slices"
	"testing"
)

// TestSSHConfig: what runs, loads or names something is left out however it is written, and so is what stands under a
// condition that runs something.
func TestSSHConfig(t *testing.T) {
	for text, want := range map[string]struct {
		shown string
		left  []string
	}{
		"Host a\n\tPort 22\n":                       {"Host a\nPort 22\n", nil},
		"port=22\r\n # x\n\n":                       {"port=22\n", nil},
		"proxyCOMMAND x\nHost b":                    {"Host b\n", []string{"proxyCOMMAND"}},
		`"ProxyCommand" x`:                          {"", []string{"ProxyCommand"}},
		"ProxyCommand=x\n":                          {"", []string{"ProxyCommand"}},
		"IdentityAgent x\nIdentityAgent y":          {"", []string{"IdentityAgent"}},
		"Match exec x\nUser u\nHost c\nUser v":      {"Host c\nUser v\n", []string{"Match exec"}},
		"Match host c !exec \"x\"\nUser u\n":        {"", []string{"Match exec"}},
		"Match exec x\nUser u\nMatch all\nUser v\n": {"Match all\nUser v\n", []string{"Match exec"}},
		"Include x\nPKCS11Provider y":               {"", []string{"Include", "PKCS11Provider"}},
		"\x1b[31m x":                                {"", []string{`\x1b[31m`}},
	} {
		if shown, left := sshConfig(text); shown != want.shown || !slices.Equal(left, want.left) {
			t.Errorf("%q: %q, %q, want %q, %q", text, shown, left, want.shown, want.left)
		}
	}
}

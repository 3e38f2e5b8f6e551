package policy

import "sbx.example/sbx/broker/internal/policy/mac"

// systemPlaces are what a shipped profile shows on this system alone.
func systemPlaces(profile string) []string { return mac.Places(profile) }

// systemSecrets are what is secret on this system alone.
func systemSecrets() (out []Secret) {
	for _, s := range mac.Secrets() {
		out = append(out, Secret{Pattern: s.Pattern, Reason: s.Reason})
	}
	return out
}

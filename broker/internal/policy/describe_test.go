package policy

import "testing"

// A new key without a sentence would be a blank in the manual.
func TestEveryKeyIsDescribed(t *testing.T) {
	for _, d := range Describe() {
		if d.Help == "" || d.Values == "" {
			t.Errorf("%s: help %q, values %q: add a case to describe.go", d.Key, d.Help, d.Values)
		}
	}
}

//go:build linux

// Package rules holds the policy files of a session that runs: it reads them again when they have changed, and writes
// answers that are to last into them. It must not decide anything. A run hands it to the arbiter, and the gate looks
// whether what was granted is granted still.
package rules

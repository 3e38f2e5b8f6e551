//go:build linux

// Package selftest tests the built binaries the way people use them, and the shape of the source tree.
// It must never reach into the broker: what it cannot see from outside is not promised.
// Only go test runs it; checks, probe and bench below it have callers of their own.
package selftest

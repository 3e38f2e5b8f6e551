//go:build linux

// Package steps has instructions that several tapes of the broker's share, and the error that names the step of a tape
// that failed. It must never start anything. child, agent, netns and helpertest call it; launch, live, hint, cli, bwrap
// and sandbox read its errors.
package steps

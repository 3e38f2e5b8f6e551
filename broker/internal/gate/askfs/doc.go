//go:build linux

// Package askfs shows, name by name and read-only, what a sandbox hides of the host, when somebody has said yes to it.
// What nobody has said yes to is missing. It must not decide anything, nor look at what hides it: package live has it
// served where bubblewrap's words hide something, with what is the sandbox's own in front of it.
package askfs

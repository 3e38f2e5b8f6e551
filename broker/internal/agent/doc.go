//go:build linux

// Package agent mounts and unmounts in a sandbox that runs. It is a process in the sandbox's user namespace that
// carries out tapes and knows no orders of its own. It must never decide what is mounted. gate, live,
// mediator and cli call it.
package agent

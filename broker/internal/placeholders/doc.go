//go:build linux

// Package placeholders removes what an agent makes in a project for its own sandbox to mount on, and leaves: empty
// files and directories whose names its profile says. live has it done when a session ends. Where an agent runs outside
// of one and calls sbx as bwrap, cli has it done when that agent has ended (watch.go, agent.go). It must never remove
// what holds something, what git tracks, or what was there before the agent.
package placeholders

//go:build linux

// Package sshagent is a filter between a sandbox and the user's SSH agent: it passes on the listing of keys and
// signatures with keys that were chosen, or only signatures of git, and answers every other request with a
// failure. It must never hand out the agent's own socket, pass on a byte that it did not understand, or let
// a request change the agent. doors starts one for a session that was granted the agent.
package sshagent

// Package prompt puts the questions of one session to a person: it queues, merges, bounds and shows them,
// and takes the answer from a terminal, a hook or the session's socket. It must never grant without an answer
// that was meant for this very question, and never show a byte that a sandboxed program chose unescaped.
// The gate asks through Queue.Ask; live wires the front ends.
package prompt

// Package cli is the command line and what stands behind it: the table of commands, those that need settings, the request turned into the
// planner's input, and the running session with its gate, its socket and its record. What rules and answers allow is decided in policy,
// planner, decide and arbiter. How much of an allowed path is shown, and whether it can be (gate*.go), is decided here: it must never
// be more than they said. broker's main calls it, and broker/sandbox for programs of others.
package cli

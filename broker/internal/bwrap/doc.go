//go:build linux

// Package bwrap is sbx in bubblewrap's words: it takes the command line of bwrap(1) and makes a plan that means the
// same. It parses (options.go, parse.go), plans by a picture of what will be seen (view.go, planning.go), and runs the
// plan (run.go). It must never ask anybody anything itself, never make a name on the host, and never be weaker than
// bubblewrap with the same words. What sbx holds under the words where somebody says so (enforce.go), and who asks
// about what they hide (ask.go), it is told. It keeps a record (record.go). cli calls it.
package bwrap

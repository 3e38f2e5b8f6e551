//go:build linux

// Package faststart only saves time: it clones process 1 before the Go runtime starts, has it carry out the set-up of
// an earlier run, asks for the program of sbx exec, and keeps threads out of each other's way. It must never change
// what a run does: with the build tag sbx_plain, or without its entry point, everything is the same and slower.
// README.md lists what it takes for granted. broker's main alone calls it.
package faststart

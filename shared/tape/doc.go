//go:build linux

// Package tape holds lists of raw system calls and what carries them out in a child without a second Go runtime: every
// buffer is prepared beforehand, and what runs after a clone allocates nothing and grows no stack. It must never know
// what a list is for. stage makes lists, and so do the broker's rooms that clone a child: steps, child, agent, netns
// and faststart. live shows the steps of one, and selftest's plans hold some against goldens.
package tape

//go:build linux

// Package locks takes the locks of processes inside on the host's files, where everybody sees them. This is one
// process, so each owner inside has an open file description of its own there: one that it sets record locks on
// (F_OFD_SETLK), or that it has locked as a whole (flock). It must never keep a lock that its owner has given back, nor
// let anybody wait whom the kernel has interrupted. gatefs calls it.
package locks

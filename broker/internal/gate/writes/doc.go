//go:build linux

// Package writes carries out, for the programs of a sandbox, the calls that make or change names in trees that the
// kernel shows them read-only: it asks the judge of names about each, does what is allowed beneath the writable root of
// the tree by descriptor, with the caller's mask of modes, and hands opened files back. What it does not carry out it
// lets the kernel do, which is always safe: there the tree is read-only. It must never act on a path that was followed
// through a link, nor on one that it has not judged as it was walked. live makes a Carrier for each session that has
// such trees; notify gives it the calls.
package writes

//go:build linux

// Package stage makes the tape of a sandbox's process 1 from a Setup, as far as it takes privileges, and holds what
// process 1 does when it has given them up. It must never decide what is in a sandbox, nor hold what sbx-helper does
// not: what needs a user namespace, or no privilege, is child's. The helper calls it, and so do child, agent, netns and
// faststart. launch, steps, bwrap and gate/notify's tests name its types.
package stage

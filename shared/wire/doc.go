//go:build linux

// Package wire is the one socket between sbx and sbx-helper: a plan and descriptors go down, once, and
// numbers come up. It must never interpret what it carries, and nothing that the helper says is text, so
// that no string of a caller or of a file of root's comes back. It holds only what the helper links: the other end is
// package broker/internal/helperclient. Afterwards process 1 of the sandbox goes on speaking on the same socket (see
// stage).
package wire

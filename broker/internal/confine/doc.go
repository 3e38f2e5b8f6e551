//go:build linux

// Package confine keeps the limits of a session: its resource limits, the control group that holds them where there
// is one, what reached them, the session's measurements, and the broker's own memory. It must not know the command
// line or decide what is allowed. A run calls it.
package confine

//go:build linux

// Package helperclient is the broker's end of the socket to sbx-helper: it asks, and words the answers, which are
// numbers. It must never start the helper or decide what it is asked for. launch, network, egress, child and live call
// it, and helpertest.
package helperclient

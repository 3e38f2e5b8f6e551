//go:build linux

// Package wayland asks a compositor to serve a socket of ours as one of a sandboxed program's (security-context-v1), so
// that it keeps screen contents, injected keys and the like from whoever connects there. It must never pass on the
// compositor's own socket, or take a compositor for one that knows the protocol because it said nothing. doors calls it
// for a session with --wayland.
package wayland

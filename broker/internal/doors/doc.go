//go:build linux

// Package doors lets something of the host in: the SSH and GnuPG agents, the session bus, Wayland, X11, Nix, sockets
// that were named, and what containers need. What a session asks for becomes grants, and Doors with a filter where
// there is one. It must never let a socket in that settings and options do not name, nor one through which the whole
// host can be had. A run makes them with its input, opens, serves and closes them.
package doors

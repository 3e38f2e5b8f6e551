//go:build linux

// Package nixdaemon is a filter between a sandbox and the daemon of a Nix store: it passes on questions, additions of
// paths and builds, in the version of the worker protocol that it knows. It must never pass on an operation that it
// does not know, a setting that only trusted users may make, or, without the network, anything that would have the
// daemon fetch. doors starts one for each store of a session.
package nixdaemon

//go:build linux

// Package egress is the network of one session: from settings and options to network.Options, with the files that name
// its resolver inside, its questions, and its record. What passes is network's to enforce, and the arbiter's to decide.
// It must never reach further than settings, options and answers say. A run makes it, starts it and closes it.
package egress

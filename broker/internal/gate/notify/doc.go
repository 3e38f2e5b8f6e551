//go:build linux

// Package notify is the gate's second engine: it answers the system calls that a sandbox's filter hands over through
// seccomp_unotify(2), lets those pass that only concern what is mounted inside, and turns the others into questions.
// It must never let a call pass whose effect a program could widen by rewriting memory after the look: what passes can
// reach nothing but the sandbox's own mounts, and everything else is carried out by the broker on an object it pinned.
// live calls Serve, by way of package gate, with the listener that launch hands it; where there is no gate, Denials.
package notify

//go:build linux

// Package mediator carries out and records what changes the judged trees of a session: it joins the carrier of writes,
// the servers of directories with hidden names, what covers secrets that come later, and the judges of guarded names.
// It must never decide about what is not granted: who asks is behind Asker. live runs it.
package mediator

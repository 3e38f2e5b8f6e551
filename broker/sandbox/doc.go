//go:build linux

// Package sandbox runs programs in sandboxes from Go, in the caller's own process: with the settings, profiles,
// questions and records of sbx run. It must never offer what the command does not. Programs of others import it.
//
// The command line is no caller of it, because it owns its process: its own process 1 stands before anything is
// parsed, its signals and its terminal are the session's, and it leaves when that ends. A caller here keeps all of
// these. What both share lies below:
//
//   - a run is live.Broker, whose fields say which of the two it is
//   - exec is package client, for Sandbox.Exec as for sbx exec
//   - an answer is Request.Answer or, from anywhere else, the session's socket, for client as for sbx approve
//   - the record is package audit, for Result.Audit as for sbx audit
package sandbox

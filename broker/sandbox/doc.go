// Package sandbox runs programs in sandboxes from Go, in the caller's own process: with the settings, profiles,
// questions and records of sbx run, which calls the same code below it. It must never offer what the command does not.
// Programs of others import it.
package sandbox

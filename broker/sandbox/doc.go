// Package sandbox runs programs in sandboxes from Go, in the caller's own process and as sbx run does it: with the same
// settings, profiles, questions and records. It must never offer what the command does not: it makes a command line and reads
// the answer. Programs of others import it; sbx itself runs the same code below it.
package sandbox

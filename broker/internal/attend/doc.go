//go:build linux

// Package attend asks what a session asks on the terminal of a program that joins it: sbx exec, sbx attach. It must
// never decide anything: the session takes the answers, and refuses those that it may. The commands call it.
package attend

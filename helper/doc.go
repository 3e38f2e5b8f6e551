//go:build linux

// Command sbx-helper builds a sandbox on a host that gives ordinary users no user namespaces. It is the
// only part of sbx that may be set-user-id or started by sudo, and it must never have more file
// authority than its caller, nor do anything that the table in permitted.go does not have.
// sbx starts it with one end of a socket as descriptor 0; README.md says in which order to read it.
package main

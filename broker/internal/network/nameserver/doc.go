//go:build linux

// Package nameserver asks name servers, in the namespace of whoever calls. It must never send anything of a program's
// but the name and the type of its question, nor take an answer to another one. The resolver of package network asks
// the host's by it.
package nameserver

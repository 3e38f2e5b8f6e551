//go:build linux

// Package points has, in front of a file server, the names that whoever builds a sandbox inside makes to mount on. They
// are never on the host. It must not know what may be written: what a point stands in the way of, the server behind it
// decides. Package live puts it before the servers of guarded trees.
package points

//go:build linux

// Package nft speaks just enough of the kernel's nf_tables protocol to keep one table in a network namespace that this
// process is not in. It must never decide what a rule should say, and never touch another table or another namespace
// than its socket's. network builds the sandbox's rules with it, on a netlink socket that was made inside the
// namespace.
package nft

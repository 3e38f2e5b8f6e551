//go:build linux

// Package rtnl speaks the little of rtnetlink(7) that a veth device takes, and carries netlink messages.
// It must never put text of a caller's into a message: names and numbers are its users' own.
// sbx-helper uses it on the host's side of a device, and the broker inside the sandbox's namespace.
package rtnl

//go:build linux

// Package netns makes namespaces apart from a sandbox's process 1: networks with the sockets in them, programs beside
// them, identity maps. Each is the work of a child that carries out one tape and ends. It must never decide what a
// network lets through. network, child, launch, doors, egress and live call it.
package netns

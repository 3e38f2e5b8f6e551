//go:build linux

// Package caches keeps what tools fetched and built in sandboxes from one run of a project to the next: a layer for
// each place, which lies between the host's files and what the session writes. It holds where these layers are, how a
// session's writing comes into them, and how they go. Nothing in them is ever opened, followed or run out here: it is
// data of whatever ran inside. Which places there are is the planner's to know. Packages live and records call it.
package caches

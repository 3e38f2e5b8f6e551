//go:build linux

// Package report collects what a session refused and asked, and says it afterwards: each with the one command that
// allows it next time, or with what to do where no command does. It must never decide anything, nor refuse. live,
// mediator and the network tell it.
package report

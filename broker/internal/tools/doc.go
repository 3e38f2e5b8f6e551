//go:build linux

// Package tools has calls of tools carried out: a tool is a program with an authority that those who call it have not.
// Inside a name in /tool stands for it, which passes arguments, standard input and directory to the broker; the broker
// judges the call, runs the program in a sandbox beside the caller's, or on the host, and passes on what it says. It
// must never start a shell, pass a variable or a descriptor of the caller's on, or keep more of a stream than a piece.
// doors finds the tools, live serves them, and the command line is the client.
package tools

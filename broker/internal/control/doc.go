// Package control is the session socket: one JSON object a line, in both directions, between a broker and
// the tools of the same user, and the client that those tools use. It must never act for another uid or for
// a process inside a sandbox, never take a path or a right from a client, and never let one client harm the
// session or another. live wires the handlers of the server, and command calls the client.
package control

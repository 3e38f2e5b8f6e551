// Package sniff reads the name of a host out of what a program sends first: a ClientHello of TLS, or the head of each
// request of HTTP/1. It must refuse whatever another reader could understand differently, since what it names is what
// network compares. Called by network for connections that name their host.
package sniff

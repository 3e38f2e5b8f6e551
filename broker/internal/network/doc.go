//go:build linux

// Package network gives a sandbox exactly the reach that was allowed: a network namespace above the sandbox's own user
// namespace, an unprivileged process that carries its packets, rules and a resolver that open what was allowed and
// nothing else. It must never open an address that was not judged, let a name be looked up that is not allowed, or go
// on when a part of it is gone. egress makes one for a run that asks for a network and hands its namespace to launch;
// questions go through the func it is given.
package network

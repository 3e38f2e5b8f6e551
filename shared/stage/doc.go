// Package stage carries out a Plan: it turns it into a tape, a list of raw system calls with every buffer prepared beforehand, and runs the
// tape in a raw-cloned child without a second Go runtime. For the broker it also holds what begins before the runtime does (entry*.go:
// process 1, and the client of sbx exec), the set-up remembered from run to run (ahead*.go), the agent that mounts later, and which
// processors all of this runs on. It must never decide what is in a sandbox, nor run Go code that allocates after the clone.
// broker's main, cli, launch, network and session call it in the broker's process; sbx-helper calls the interpreter where user
// namespaces are not to be had.
package stage

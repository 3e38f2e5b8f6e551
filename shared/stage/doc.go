// Package stage carries out a Plan: it turns it into a tape, a list of raw system calls with every
// buffer prepared beforehand, and runs the tape in a raw-cloned child without a second Go runtime.
// It must never decide anything, search a path, or run Go code that allocates after the clone.
// launch calls it in the broker's own process; sbx-helper calls the same code where user namespaces
// are not to be had.
package stage

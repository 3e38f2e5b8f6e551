// Package explain says what a run from here would make of a path, a socket or a host, by which rule, where that stands
// and what would allow it: it asks each layer in the one order in which they act. It finds past events in the logs. It
// makes, asks and records nothing, and prints nothing. The command line calls it with a plan.
package explain

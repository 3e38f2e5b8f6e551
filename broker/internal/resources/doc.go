// Package resources limits, measures and ends a session by a control group of its own (cgroup-v2).
// It must never write outside the group that it made, never move a process that is not the sandbox's, and never
// take a host without control groups for an error: it says what cannot be had there, and why.
// confine finds a group before the program starts, puts process 1 in it while that waits, and removes it at the end.
package resources

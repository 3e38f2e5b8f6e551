//go:build linux

// Package child is process 1 of a sandbox as the broker sees it: it compiles a plan to tapes, clones process 1, follows
// what it reports, and starts and signals programs in it. It must never decide what is in a sandbox, nor know how a
// start is made faster: that is faststart's, and may be missing. launch and bwrap call it once for each run; live,
// gate, mediator, doors, egress, confine, cli and session name its types, faststart hands it a process 1 that was
// cloned before, helpertest gives the tests of sbx-helper a tail.
package child

//go:build linux

// Package gatefs serves directories of a sandbox as a FUSE file system: the root's skeleton, whose gated names wait
// for an answer, and guarded directories, writable loopbacks of the host in which hidden names do not exist and
// guarded names cannot be changed. Which names those are served.Tree says, and two policies decide: AccessPolicy about
// names that are not granted, GuardPolicy about what is in guarded directories. It applies them at every access. It
// must never mount anything, which its Agent does, never walk a path that the sandbox can change, and never block a
// request of the agent. What was asked and granted is kept by grants, what is locked by locks. gate gives it the
// /dev/fuse descriptors of the set-up, an Agent and an AccessPolicy, mediator a GuardPolicy; bwrap uses it for names
// that are not there.
package gatefs

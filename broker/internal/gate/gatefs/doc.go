// Package gatefs serves the sandbox's root as a FUSE file system: skeleton directories whose gated names wait for an answer, and
// guarded directories, writable loopbacks of the host in which hidden names do not exist and guarded names cannot be changed.
// It must never mount anything, never decide anything, never walk a path that the sandbox can change, and never block a request of the graft agent.
// It is called by package gate, which passes it a mounted /dev/fuse descriptor, an Agent that mounts and an Ask function that decides.
package gatefs

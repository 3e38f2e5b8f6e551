//go:build linux

// Package grants keeps what has been asked about names that are not granted, what was answered and what is granted. A
// request that needs an answer waits here, and whoever wants the same waits for the same answer. It knows paths and
// types only: it must never look at the host's files, and never answer by itself. Mounting is its Mounter's, asking its
// Ask function's, and what the kernel is told its caller's. gatefs calls it for each request that is not settled by the
// tree, and gate takes back what was granted.
package grants

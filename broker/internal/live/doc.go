//go:build linux

// Package live is the run: it takes a request, has it planned, builds the sandbox and looks after the session until it
// is over, with its gate, its socket, its record and its report. What is allowed is decided in policy, planner, gate
// and arbiter. It must never read a command line nor print: whom it speaks to is said in Broker. cli calls it for sbx
// run, and broker/sandbox for programs of others.
//
// In the order of a session:
//
//   - start: broker.go, run.go (attempts, and when there is another), attempt.go (the steps of one), announce.go;
//     helper.go and passthrough.go for hosts without namespaces and runs without a sandbox
//   - questions: approvals.go, grace.go, terminal.go; the network's and the filters' in network.go and filters.go; what
//     has a label in labels.go, decoys in decoys.go
//   - reached from outside: service.go (the socket), exec.go (programs that clients start), filetool.go, detached.go
//   - record and end: auditlog.go, staticlog.go, record.go
//   - under bubblewrap's words: words.go, asking.go
package live

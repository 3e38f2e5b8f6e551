// Package live is the run: it takes a request, has it planned, builds the sandbox and looks after the session until it
// is over, with its gate, its socket, its record and its report. What is allowed is decided in policy, planner, gate
// and arbiter. It must never read a command line nor print: whom it speaks to is said in Broker. cli calls it for sbx
// run, and broker/sandbox for programs of others.
package live

// Package cli is the command line: the table of commands, those that run something or look what the host offers, and
// what they print. The run itself is live's. It must never decide what is allowed. broker's main calls it.
package cli

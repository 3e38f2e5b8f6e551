// Package integrate puts sbx below the programs that people use: it writes the few files by which an agent starts its
// commands, or itself, in a sandbox, keeps a record of what it wrote, and takes it back. It decides nothing about what
// a sandbox grants. cli has its row in the table of commands.
package integrate

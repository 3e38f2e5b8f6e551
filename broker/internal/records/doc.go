// Package records holds the commands about sessions as their folders tell of them: which there are, what a program
// wrote, how it ended, and that records go. It starts nothing and asks no running session but to end. cli has its rows
// in the table of commands.
package records

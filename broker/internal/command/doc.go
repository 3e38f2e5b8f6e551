// Package command holds the rows of the command table that begin no sandbox (they read what there is, answer and
// change: sessions, logs, layers, questions, rules, settings), and all printing: what a person is told goes through
// Term. cli calls it.
package command

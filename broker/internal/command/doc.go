// Package command holds the rows of the command table that read what there is (sessions, logs, layers, questions) or
// talk to a running session, and all printing: what a person is told goes through Term. It begins no sandbox and
// reads no settings. cli calls it.
package command

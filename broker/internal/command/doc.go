// Package command holds the rows of the command table that begin no sandbox and ask what runs or what it left:
// sessions, questions, logs, layers, why, help. It holds all printing, too: what a person is told goes through Term.
// Commands about policy files are policycmd's, those about sessions' folders are records'. cli calls it.
package command

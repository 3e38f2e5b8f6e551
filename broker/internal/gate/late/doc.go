//go:build linux

// Package late hides the names of secrets that the host makes while a session runs in directories that are mounted
// natively, where nobody is asked when a name is looked up: it watches the directories, has each new name judged, and
// what is a secret covered inside. It must never decide what a secret is (package secrets does), nor keep anything
// from the session that the session made itself. It also says when a configuration may hold a new credential. Between a
// name's appearance and its cover lies a moment. live starts one for each session that has such directories.
package late

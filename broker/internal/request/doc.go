// Package request is what was asked for: the options of sbx run, the files' settings merged with them, and the
// environment that follows. What was typed is not changed once it was read. It prints nothing and makes nothing. The
// command line and a run read it.
package request

// Package files reads, writes, edits, lists and finds files for agents' own file tools (sbx file). Everything is done
// inside a session, by sbx itself started there as a program is: so the session's view, questions, guards and limits
// are its own. It must never decide what may be done, and never look at a file outside. control and client say what is
// wanted, live has it started, cli is the program inside.
package files

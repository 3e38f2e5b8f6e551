// Package held runs one program that macOS's sandbox holds (package seatbelt), and looks after its session: the record,
// the audit log and the socket. It must never decide what is shown; the profile says everything. cli calls it.
package held

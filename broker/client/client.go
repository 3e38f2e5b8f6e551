package client

import (
	"os"
	"path/filepath"

	"sbx.example/sbx/broker/internal/control"
	"sbx.example/sbx/broker/internal/host"
	"sbx.example/sbx/broker/internal/prompt"
)

// What is said on the socket; docs/protocol.md describes the members.
type (
	// Session is a connection to one session: Info says which, Follow passes events on, Approve and Deny answer
	// questions, Kill, Freeze, Thaw and Stats are the commands of these names.
	Session = control.Client
	// Info is what a session says about itself.
	Info = control.Info
	// Message is any event; the members that its Type lacks are empty.
	Message = control.Message
	// Question is one that waits for an answer.
	Question = prompt.Question
	// Answer says how far and how long an answer reaches; the zero Answer is once.
	Answer = prompt.Answer
	// Metrics is what a session uses.
	Metrics = control.Metrics
	// Error is what a broker says before it closes the connection; Code is one of docs/protocol.md.
	Error = control.Error
	// End is how a program ended.
	End = control.ExecEnd
)

// Sessions is where a user's sessions are found.
type Sessions struct{ dir string }

// Here finds the sessions of this process's user by its environment, as sbx does.
func Here() Sessions {
	home, _ := os.UserHomeDir()
	return At(os.Getenv("XDG_RUNTIME_DIR"), host.Lookup(host.WithState(os.Environ()), "XDG_STATE_HOME"), home)
}

// At is Here with values of these names, of which those may be empty that are not set.
func At(runtimeDir, stateHome, home string) Sessions {
	return Sessions{control.FindRoot(runtimeDir, stateHome, home)}
}

// List returns the ids of the sessions, sorted. One of them may have ended: then IsDead is true of what Dial says.
func (s Sessions) List() ([]string, error) { return control.List(s.dir) }

// Socket is the name of a session's socket.
func (s Sessions) Socket(sid string) string { return filepath.Join(s.dir, sid, "sock") }

// Dial connects to a session.
func (s Sessions) Dial(sid string) (*Session, error) { return control.Dial(s.dir, sid) }

// IsDead says whether an error means that the session has ended.
func IsDead(err error) bool { return control.IsDead(err) }

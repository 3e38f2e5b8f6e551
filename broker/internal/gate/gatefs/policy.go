//go:build linux

package gatefs

import (
	"context"

	"sbx.example/sbx/broker/internal/gate/grants"
	"sbx.example/sbx/broker/internal/guard"
)

// AccessPolicy decides about names of the host's that are not granted. Paths are those of the served tree.
type AccessPolicy interface {
	// Ask is grants.Ask: it waits for the answer.
	Ask(ctx context.Context, r grants.Request) grants.Answer
	// Secrecy says what a secret at a path is for a thread.
	Secrecy(pid uint32, path string) grants.Secrecy
	// Foreign is the point at which a file system that must not be looked into is mounted over a path, "" if there is
	// none. It is asked about as a whole and mounted.
	Foreign(path string) string
	// Config says whether what is at a path is a repository's configuration.
	Config(path string) bool
	// IsHistory says whether a path is one under which programs keep, by themselves, what was typed in them. All are in
	// one directory. What is made there stays in Options.HistoryDir.
	IsHistory(path string) bool
	// Moves says whether a directory may be moved to another name with all that is in it.
	Moves(from, to string) bool
	// Temporary says whether what was made at a path asks no more: it is to replace what may be written.
	Temporary(path string) bool
	// Marked says whether what is written has the mark of a decoy: it is not written.
	Marked(pid int, path string, text []byte) bool
}

// GuardPolicy decides about what is in guarded directories. Paths are those of the served tree but where it says else.
type GuardPolicy interface {
	// Linked says of a path outside whether it is another name (hard link) of a secret.
	Linked(outside string) bool
	// Check decides whether next may replace old at path, which a rule of that action names. Old is nil when there is
	// none.
	Check(path string, what guard.Action, old, next []byte) error
	// Made says whether a configuration with that text at a path is the session's alone.
	Made(path string, text []byte) bool
}

// static is the policy of a server without one: nobody is asked, nothing is granted and nothing is special.
type static struct{}

func (static) Ask(context.Context, grants.Request) grants.Answer { return grants.Answer{} }
func (static) Secrecy(uint32, string) grants.Secrecy             { return grants.NoSecret }
func (static) Foreign(string) string                             { return "" }
func (static) Config(string) bool                                { return false }
func (static) IsHistory(string) bool                             { return false }
func (static) Moves(string, string) bool                         { return false }
func (static) Temporary(string) bool                             { return false }
func (static) Marked(int, string, []byte) bool                   { return false }

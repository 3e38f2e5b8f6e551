// Package policy turns configuration and rule files into values: strictly typed, merged, each with its origin.
// It must never let an unpinned project file widen anything, guess at a malformed file, or read one that somebody else
// controls. The command line loads and shows it, planner reads the configuration, decide asks it about single accesses.
package policy

import (
	"fmt"
	"strconv"

	"sbx.example/sbx/broker/internal/policy/excerpt"
	"sbx.example/sbx/broker/internal/policy/pathname"
)

// Vars are what the paths of a file may begin with.
type Vars = pathname.Vars

// Scope is where a value or rule comes from, in merge order.
type Scope int

// Scopes in merge order: a later one overrides an earlier one unless the org says otherwise.
const (
	ScopeDefault Scope = iota
	ScopeOrg
	ScopeProject
	ScopeUser
	ScopeSession // command line and answers given in this session
)

func (s Scope) String() string {
	switch s {
	case ScopeDefault:
		return "default"
	case ScopeOrg:
		return "org"
	case ScopeProject:
		return "project"
	case ScopeUser:
		return "user"
	case ScopeSession:
		return "command line"
	}
	return "scope " + strconv.Itoa(int(s))
}

// Decision of a rule.
type Decision int

// Decisions ordered by strength: of two equally specific rules the higher wins.
const (
	Allow Decision = iota + 1
	Ask
	Deny
	// Reveal shows one secret file, and is as strong as Allow: nothing else that a rule says about a secret opens it.
	Reveal
)

// strength orders decisions about what is named equally.
func (d Decision) strength() Decision {
	if d == Reveal {
		return Allow
	}
	return d
}

func (d Decision) String() string {
	switch d {
	case Allow:
		return "allow"
	case Ask:
		return "ask"
	case Deny:
		return "deny"
	case Reveal:
		return "reveal"
	}
	return "none"
}

// ParseDecision accepts the words of a policy file.
func ParseDecision(s string) (Decision, error) {
	switch s {
	case "allow":
		return Allow, nil
	case "ask":
		return Ask, nil
	case "deny":
		return Deny, nil
	case "reveal":
		return Reveal, nil
	}
	return 0, fmt.Errorf("reading decision %s: want allow, deny or ask, or reveal for a secret", excerpt.Quote(s))
}

// Kind is what a rule or question is about.
type Kind string

// Kinds are also the key that names the pattern in a rule.
const (
	KindPath   Kind = "path"
	KindExec   Kind = "exec"
	KindHost   Kind = "host"
	KindSocket Kind = "socket"
)

// Access is what is to be done with it.
type Access string

// Accesses a rule can name.
const (
	List    Access = "list" // the names in a directory
	Read    Access = "read" // contents, and names
	Write   Access = "write"
	Exec    Access = "exec"
	Connect Access = "connect"
)

// Origin says where a value stands; Line 0 means the whole file, File empty the built-in default.
type Origin struct {
	Scope Scope
	File  string
	Line  int
}

func (o Origin) String() string {
	switch {
	case o.File == "":
		return o.Scope.String()
	case o.Line == 0:
		return o.File
	}
	return o.File + ":" + strconv.Itoa(o.Line)
}

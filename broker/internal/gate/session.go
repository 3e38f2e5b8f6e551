//go:build linux

package gate

import (
	"errors"

	"sbx.example/sbx/audit"
	"sbx.example/sbx/broker/internal/arbiter"
	"sbx.example/sbx/broker/internal/child"
	"sbx.example/sbx/broker/internal/decide"
	"sbx.example/sbx/broker/internal/guard"
	"sbx.example/sbx/broker/internal/planner"
	"sbx.example/sbx/broker/internal/policy"
	"sbx.example/sbx/broker/internal/request"
	"sbx.example/sbx/broker/internal/rules"
	"sbx.example/sbx/broker/plan"
)

// Session is what the engines know of the session besides its answers.
type Session struct {
	In    *planner.Input
	Names *request.NameGate
	Rules *rules.Files

	Warn   func(string)
	Opened func(dir string, judge *guard.Judge) // told of a directory that an answer lets be written, and of its judge
	Shown  func(dir string)                     // told of one that an answer has mounted for reading

	// Marked says whether what is written to a file has the mark of a decoy; nil: there are none.
	Marked func(pid int, path, text string) bool

	Notifying func() // gatefs.Options.Notifying of the root

	// From when the sandbox is built.
	View    *View
	Arbiter *arbiter.Arbiter
	Log     *audit.Writer
}

// Engine notices accesses that are not granted, and carries out what was answered.
type Engine interface {
	Standing(c *child.Child, p *plan.Plan) // the sandbox stands
	Forget(path string) error              // takes back what was mounted at a path, above or below it
	End()                                  // settles what waits
}

// NeverGranted is what the gate says of what it keeps out of sight.
const NeverGranted = "the path is never granted"

// HiddenReason begins the reason of what does not exist inside.
const HiddenReason = "hidden: "

// ErrGuarded is the reason of what the guard keeps from being changed.
var ErrGuarded = errors.New("guarded: it decides what runs outside of the sandbox")

// Hidden records that somebody looked for what does not exist inside, with the reason that the lists have for it; v is
// for what no list names.
func (s *Session) Hidden(q decide.Ask, v decide.Verdict) {
	if h := policy.HiddenBy(s.Rules.Concealed(), q.Kind, q.Path); h != nil {
		v.Silent = decide.IsHistory(q.Path) // on record, but nothing to tell anybody
		v.Reason, v.Rule, v.Origin, v.Life = HiddenReason+h.Reason, h.Pattern, h.Origin.String(), decide.Forever
	}
	s.Arbiter.Refused(q, v)
}

package arbiter

import (
	"time"

	"sbx.example/sbx/audit"
	"sbx.example/sbx/broker/internal/decide"
	"sbx.example/sbx/broker/internal/policy"
	"sbx.example/sbx/broker/internal/prompt"
)

// Recorder keeps the record of a session; *audit.Writer is one. Append returns when the event is on disk, Note and Soon
// when it is written; Soon puts it on disk within milliseconds. Often is Note, and may count what comes too often.
type Recorder interface {
	Append(audit.Event) (audit.Event, error)
	Soon(audit.Event) (audit.Event, error)
	Later(audit.Event) (audit.Event, error)
	Note(audit.Event) (audit.Event, error)
	Often(audit.Event) (audit.Event, error)
	Err() error // what keeps it from recording anything more, or nil
}

// Options of an Arbiter.
type Options struct {
	// Env is what decisions depend on; Grants and Now are the arbiter's own.
	Env decide.Env
	// Prompt says who is asked and how much. Commit and Recheck are the arbiter's own; Notify is called as well.
	Prompt prompt.Options
	// Record is where every decision is written. nil refuses everything.
	Record Recorder
	// Store makes rules last in a policy file: store is user, project or org. nil: answers cannot be stored.
	Store func(store string, rules []policy.Rule) error
	// Unstore takes out again what Store wrote last, which are these rules. nil: stored answers cannot be taken back.
	Unstore func(store string, rules []policy.Rule) error
	// Undone is called when an answer has been taken back, for what was opened by it. May be nil.
	Undone func(decide.Consent) error
	// Fresh is called before each decision that rules could change. It returns the new Env when policy files have changed.
	// An error means that they cannot be relied upon any more: until it is gone, what rules allowed is asked. May be nil.
	Fresh func() (env decide.Env, changed bool, err error)
	// Alone says that nobody is there who could answer. A question then waits for Grace in case somebody comes; the next
	// ones do not wait until somebody has come. nil: somebody is always there.
	Alone func() bool
	Grace time.Duration // 10 s
	// Process returns the process that a thread belongs to, and when it began; nil takes threads for processes.
	Process func(tid int) (pid int, start uint64)
	// Contact says with whom the session is in contact beside sockets that it was asked about. May be nil.
	Contact func() []decide.Contact
	// Labelled is called when the session begins to carry labels: when it returns, nothing leaves any more but what is
	// decided about with them. After an error it is called again before anything with the label is read. May be nil.
	Labelled func() error
	// Now is the clock of tests.
	Now func() time.Time
}

// Event is one settled access. Silent ones (known probes) make none.
type Event struct {
	Time    time.Time
	Ask     decide.Ask
	Verdict decide.Verdict
	By      string        // who answered: tty, socket, hook, timeout, flood, gone, policy; "" when nobody was asked
	Latency time.Duration // from the access to the verdict
	Repeat  bool          // the same object was settled in the same way before
}

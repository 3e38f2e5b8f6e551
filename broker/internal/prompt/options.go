package prompt

import (
	"context"
	"errors"
	"fmt"
	"time"

	"sbx.example/sbx/broker/internal/decide"
)

// Mode says who is asked.
type Mode string

// The modes of --prompt.
const (
	Auto      Mode = "auto"
	TTYOnly   Mode = "tty"
	Socket    Mode = "socket"
	DenyAll   Mode = "deny"
	AllowAll  Mode = "allow"
	maxWaiter      = 4096 // accesses that may wait in one session, whatever they ask
	maxRecent      = 256  // settled ids that are remembered
)

// Options of a Queue. The zero value is the default for every field.
type Options struct {
	SID           string
	Home          string        // shown as ~
	Mode          Mode          // Auto
	Timeout       time.Duration // 5 min; its end denies
	MaxOpen       int           // 32 questions
	Burst         int           // 40 new questions that nobody answers, then one each 500 ms
	CoalesceAfter int           // 4 questions about files of one directory that wait; with the next they become one
	AutoDenyAfter int           // 20 denials in a row end the asking
	HookCommand   string        // see Hook; empty: none
	HookEnv       []string
	HookFailed    func(error) // told why an answer of the command or of Answer counted as no
	// Answer is the program's that runs the session: it answers, or has nothing to say. ctx ends with the question.
	Answer func(ctx context.Context, q Question) (a Answer, answered bool)
	// Commit runs before an answer takes effect: it refuses what the organisation forbids and stores
	// what is to last. Its error goes to whoever answered, and the question stays open.
	Commit func(Question, decide.Consent) error
	// Undo takes an answer back that took effect. It is called without the queue's lock. nil: none can be taken back.
	Undo func(decide.Consent) error
	// Recheck runs for the questions that are still open after a lasting answer was committed. A rule
	// that is more specific than the answer must still ask, so only the policy can tell.
	Recheck func(Question) (Answer, bool)
	// Notify sees every event in order. It, Commit and Recheck are called with the queue locked: they
	// must not call the queue, and whatever waits for them waits.
	Notify func(Event)

	hookTimeout time.Duration // 1 min
}

// refillEvery is how long it takes to have one more question of Options.Burst.
const refillEvery = 500 * time.Millisecond

func (o *Options) fill() {
	def := func(p *int, v int) {
		if *p <= 0 {
			*p = v
		}
	}
	dur := func(p *time.Duration, v time.Duration) {
		if *p <= 0 {
			*p = v
		}
	}
	def(&o.MaxOpen, 32)
	def(&o.Burst, 40)
	def(&o.CoalesceAfter, 4)
	def(&o.AutoDenyAfter, 20)
	dur(&o.Timeout, 5*time.Minute)
	dur(&o.hookTimeout, time.Minute)
	if o.Mode == "" {
		o.Mode = Auto
	}
}

// ParseMode reads the value of --prompt.
func ParseMode(s string) (Mode, error) {
	switch m := Mode(s); m {
	case Auto, TTYOnly, Socket, DenyAll, AllowAll:
		return m, nil
	}
	return "", fmt.Errorf("unknown prompt mode %.40q: use auto, tty, socket, deny or allow", s)
}

// accepts says whether an answer from there counts. A hook was named by the user himself, and a
// program answers for the sandbox that it runs.
func (m Mode) accepts(by string) bool {
	switch m {
	case TTYOnly:
		return by == ByTTY || by == ByHook || by == ByProgram
	case Socket:
		return by == BySocket || by == ByHook || by == ByProgram
	case Auto:
		return IsMeant(by)
	}
	return false
}

// Kind is the kind of an Event.
type Kind string

// The kinds. A notice is for the human: one line when a flood starts, one when asking ends for good.
const (
	Asked   Kind = "asked"
	Decided Kind = "decided"
	Gone    Kind = "gone" // nobody waits any more, or the question became part of another
	Notice  Kind = "notice"
)

// Event is what changed in the queue.
type Event struct {
	Kind     Kind
	Question Question
	Answer   Answer
	Text     string // of a notice, ASCII
}

// What an answerer has to tell apart.
var (
	ErrUnknown  = errors.New("unknown question id: sbx watch --once lists those that wait")
	ErrAnswered = errors.New("question was settled already: the first answer stands")
	ErrMode     = errors.New("this session takes no answers from here: see --prompt")
)

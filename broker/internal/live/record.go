//go:build linux

package live

import (
	"crypto/sha256"
	"encoding/hex"
	"path"
	"strconv"
	"sync"
	"sync/atomic"

	"sbx.example/sbx/broker/internal/changes"
	"sbx.example/sbx/broker/internal/launch"
	"sbx.example/sbx/broker/internal/planner"
	"sbx.example/sbx/broker/internal/session"
	"sbx.example/sbx/broker/plan"
	"sbx.example/sbx/shared/tape"
)

// record writes the session's plan and transcript beside what else is done: the plan while the sandbox is built, the
// transcript and the audit log's beginning while the program runs.
type record struct {
	s     *session.Session
	p     *plan.Plan
	later bool
	hash  string
	err   error
	plan  chan struct{} // closed when the plan is written
	steps []tape.Step

	rest func()        // writes the rest, once; nil if the program was not started
	log  func() string // names the audit log, once there is one
	kept bool          // the layers stay
	over atomic.Bool   // the program has ended
}

// newRecord begins to write p, unless that is for later: when nobody needs the plan's hash before.
func newRecord(s *session.Session, p *plan.Plan, later bool) *record {
	r := &record{s: s, p: p, later: later, plan: make(chan struct{})}
	if !later {
		go r.write()
	}
	return r
}

func (r *record) write() {
	defer close(r.plan)
	b, err := plan.Encode(r.p)
	if err == nil {
		err = r.s.WriteFile("plan.json", b)
	}
	sum := sha256.Sum256(b)
	r.hash, r.err = hex.EncodeToString(sum[:]), err
}

// planned waits until the plan is written, and returns its hash; both not if it is written later. Without a record
// nothing is run.
func (r *record) planned(steps []tape.Step) (hash string, err error) {
	r.steps = steps
	if r.later {
		return "", nil
	}
	<-r.plan
	return r.hash, r.refusal()
}

func (r *record) refusal() error {
	if r.err == nil {
		return nil
	}
	return &planner.Refusal{What: "writing the session's record", Err: r.err, Hint: session.RecordHint}
}

// standing returns what is done when the sandbox stands: the rest of the record, and next, which may be nil. A program
// whose record cannot be written is ended.
func (r *record) standing(log *staticLog, next func(*launch.Running)) func(*launch.Running) {
	return func(run *launch.Running) {
		r.rest = sync.OnceFunc(func() {
			if r.later {
				r.write()
			}
			if r.err == nil {
				r.err = r.s.WriteFile("log.jsonl", transcript(r.s.ID, run.Child.PID, r.steps))
			}
			if r.err != nil {
				run.Child.SendKill()
				return
			}
			log.opened(r.hash)
			r.note()
		})
		go r.rest()
		if next != nil {
			next(run)
		}
	}
}

// note writes what later commands look for: which audit log is the session's, so that one that is gone is missed, and
// what git tracked and the host had where layers stay. Without them they know less.
func (r *record) note() {
	if file := r.log(); file != "" {
		_ = r.s.WriteFile(session.LogFile, []byte(path.Base(file)))
	}
	if r.kept {
		_ = changes.NoteIndexes(r.p, r.s.Dir)
		_ = changes.NoteNames(r.p, r.s.Dir, func() bool { return !r.over.Load() })
	}
}

// end writes what is not written yet.
func (r *record) end() error {
	r.over.Store(true)
	if !r.later {
		<-r.plan
	}
	if r.rest != nil {
		r.rest()
	}
	return r.refusal()
}

// transcript has a line for each step with which process 1 made the sandbox.
func transcript(sid string, pid int, steps []tape.Step) []byte {
	head := `{"session":"` + sid + `","pid":` + strconv.Itoa(pid) + `,"op":`
	b := make([]byte, 0, len(steps)*(len(head)+64))
	last := tape.Step{}
	for _, s := range steps {
		if s == last {
			continue
		}
		last = s
		b = append(b, head...)
		b = plan.Bytes(s.Name).AppendJSON(b)
		b = append(b, `,"path":`...)
		b = plan.Bytes(s.Object).AppendJSON(b)
		b = append(b, "}\n"...)
	}
	return b
}

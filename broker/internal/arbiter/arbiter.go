package arbiter

import (
	"context"
	"errors"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"sbx.example/sbx/broker/internal/decide"
	"sbx.example/sbx/broker/internal/policy"
	"sbx.example/sbx/broker/internal/prompt"
	"sbx.example/sbx/broker/plan"
)

// Arbiter decides for one session. It is safe for concurrent use.
type Arbiter struct {
	opt    Options
	queue  *prompt.Queue
	grants *decide.Grants
	log    recorder

	next    atomic.Uint64 // number of the last event
	mu      sync.Mutex
	env     decide.Env
	stale   error // why the policy files cannot be relied upon at the moment
	changes int   // of what the policy files allow
	once    onceTable
	walks   map[walkKey]time.Time // that were refused, until when
	seen    seenTable
	watch   []func(Event)
	lonely  bool // a question waited for somebody to come, and nobody came
	closed  bool
	stop    chan struct{}

	following  atomic.Bool
	refreshing sync.Mutex // held from the reading of policy files until decisions follow them

	labelling sync.Mutex        // held until what a label takes is in force
	carried   map[string]string // see decide.Labels; replaced, never changed
	inForce   map[string]string // the same of those for which Options.Labelled was well
	sockets   []decide.Contact  // of the host's, that were connected to
}

// New makes the arbiter of a session. Close it at the end.
func New(opt Options) *Arbiter {
	a := &Arbiter{opt: opt, grants: decide.NewGrants(), env: opt.Env, stop: make(chan struct{})}
	a.log.to = opt.Record
	if a.opt.Now == nil {
		a.opt.Now = time.Now
	}
	if a.opt.Grace <= 0 {
		a.opt.Grace = 10 * time.Second
	}
	p := opt.Prompt
	told := p.Notify
	p.Commit, p.Recheck, p.Undo = a.commit, a.recheck, a.undo
	p.Notify = func(ev prompt.Event) {
		if ev.Kind == prompt.Asked && opt.Fresh != nil && a.following.CompareAndSwap(false, true) {
			go a.follow()
		}
		if told != nil {
			told(ev)
		}
	}
	a.queue = prompt.NewQueue(p)
	return a
}

// Queue holds the open questions, for those who show and answer them.
func (a *Arbiter) Queue() *prompt.Queue { return a.queue }

// Observe has f called with every event from now on. It is called by whoever waits for the verdict, so it must not wait
// itself.
func (a *Arbiter) Observe(f func(Event)) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.watch = append(a.watch, f)
}

// Ask settles one access: it returns when rules, an earlier answer or a human have decided, when the time for an answer
// is up or when ctx ends. Everything but an explicit yes that could be recorded is a no.
func (a *Arbiter) Ask(ctx context.Context, q decide.Ask) decide.Verdict {
	begin := a.opt.Now()
	a.refresh()
	if q.ID == "" {
		q.ID = a.opt.Prompt.SID + "-" + strconv.FormatUint(a.next.Add(1), 10)
	}
	for {
		env, closed := a.environment()
		if closed || a.opt.Record == nil {
			return refusal("the session has ended")
		}
		v, by := decide.Decide(q, env), ""
		if v.Decision == decide.AskHuman {
			secret := v.Secret
			if v, by = a.unsettled(ctx, q, v, env); secret && v.Decision != decide.Allow {
				v.Secret, v.Errno = true, int(syscall.ENOENT) // it is as if nobody had been asked
			}
		}
		if v.Silent {
			return v
		}
		if v, ok := a.through(q, v, env); ok {
			return a.conclude(q, v, by, begin, a.opt.Now())
		}
	}
}

// refusal is the verdict on what nobody wanted to refuse by itself.
func refusal(why string) decide.Verdict {
	return decide.Verdict{Errno: int(syscall.EACCES), Reason: why}
}

// Current decides like Ask as far as nobody is needed for it, and records nothing.
func (a *Arbiter) Current(q decide.Ask) decide.Verdict {
	a.refresh()
	env, closed := a.environment()
	if closed {
		return refusal("the session has ended")
	}
	return decide.Decide(q, env)
}

// Rules are the rules in force now, and how they decide.
func (a *Arbiter) Rules() (list []policy.Rule, match func(policy.Query) (policy.Rule, bool)) {
	a.refresh()
	env, _ := a.environment()
	if env.InForce == nil {
		return nil, nil
	}
	return env.InForce(), env.Policy
}

// RuledOut says whether something is refused whatever anybody answers: not because nobody is there to be asked.
func (a *Arbiter) RuledOut(q decide.Ask) bool {
	a.refresh()
	env, closed := a.environment()
	env.Static, env.NoPrompt = false, false
	return closed || decide.Decide(q, env).Decision == decide.Deny
}

// Restricts says whether a rule in force refuses a directory, or asks about it, or something below it.
func (a *Arbiter) Restricts(dir string, x policy.Access) bool {
	a.refresh()
	env, closed := a.environment()
	return !closed && env.Restricts != nil && env.Restricts(dir, x, env.Now)
}

// environment is what decisions depend on at this moment.
func (a *Arbiter) environment() (env decide.Env, closed bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	env = a.env
	env.Grants, env.Now = a.grants, a.opt.Now()
	if env.Labels != nil {
		l := *env.Labels
		l.Carried, l.InForce, l.Contact = a.carried, a.inForce, a.contacts
		env.Labels = &l
	}
	if base := env.Policy; a.stale != nil && base != nil {
		env.Policy = func(q policy.Query) (policy.Rule, bool) {
			r, ok := base(q)
			switch {
			case ok && r.Decision == policy.Allow:
				r.Decision, r.Reason = policy.Ask, unreadable
			case ok && r.Decision == policy.Reveal:
				r.Decision, r.Reason = policy.Deny, unreadable
			}
			return r, ok
		}
	}
	return env, a.closed
}

const unreadable = "the policy files cannot be read at the moment"

// refresh takes changed policy files in.
func (a *Arbiter) refresh() (changed bool) {
	if a.opt.Fresh == nil {
		return false
	}
	a.refreshing.Lock() // or what was read first could be put in the place of what was read last
	defer a.refreshing.Unlock()
	env, changed, err := a.opt.Fresh()
	a.mu.Lock()
	defer a.mu.Unlock()
	first := err != nil && a.stale == nil
	a.stale = err
	if changed && err == nil {
		a.env = env
	}
	if changed || first {
		a.changes++
		a.seen.clear()
	}
	return changed || first
}

// Refreshed takes changed policy files in and counts how often they had changed, or could not be read any more.
func (a *Arbiter) Refreshed() int {
	a.refresh()
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.changes
}

// followEvery is how often policy files are looked at while a question waits.
const followEvery = 300 * time.Millisecond

// follow settles open questions by rules that are written while they wait. One runs while there are open questions, and
// for a moment longer.
func (a *Arbiter) follow() {
	tick := time.NewTicker(followEvery)
	defer tick.Stop()
	for {
		select {
		case <-a.stop:
			return
		case <-tick.C:
		}
		if !a.queue.Waits() {
			a.following.Store(false)
			// A question that was opened just before this has found a follower.
			if !a.queue.Waits() || !a.following.CompareAndSwap(false, true) {
				return
			}
		}
		if a.refresh() {
			a.queue.Recheck()
		}
	}
}

// unsettled is about what neither rules nor answers cover: an answer to the same process a moment ago, or the human.
func (a *Arbiter) unsettled(ctx context.Context, q decide.Ask, v decide.Verdict,
	env decide.Env) (decide.Verdict, string) {
	if past, ok := a.recalled(q, env.Now); ok && q.Op != decide.Decoy && (past.Decision != decide.Allow || past.Knew(v)) {
		past.Path = v.Path
		return past, ""
	}
	if a.walkRefused(q, env.Now) {
		return refusal("refused with the rest of its walk through " + plan.Bytes(q.Walk).Quote()), ""
	}
	ans, alone := a.put(ctx, questionOf(q, v, env))
	if alone {
		return refusal(NobodyThere), prompt.ByGone
	}
	env, closed := a.environment()
	switch {
	case closed || ctx.Err() != nil:
		return refusal("nobody waits any more"), prompt.ByGone
	case !ans.Allow && !prompt.IsMeant(ans.By):
		v = refusal(silence(ans.By))
		a.rememberSilence(a.onceKey(q), v, ans.By, env.Now)
		if ans.By == prompt.ByTimeout {
			a.refuseWalk(q, env.Now)
		}
		return v, ans.By
	}
	if ans.Allow && !v.Knew(decide.Decide(q, env)) {
		return refusal("what the session has read, or with whom it is in contact, has changed since the question"), ""
	}
	got := ans.Verdict(q, env)
	if ans.Allow {
		got.Labels, got.Others = v.Labels, v.Others // of these it is known
	} else {
		a.refuseWalk(q, env.Now)
	}
	if !ans.Life.Lasts() {
		a.remember(a.onceKey(q), q.Op, got, env.Now)
	}
	return got, ans.By
}

// put asks the human. alone: nobody was there, and nobody came.
func (a *Arbiter) put(ctx context.Context, q decide.Question) (ans decide.Answer, alone bool) {
	if a.opt.Alone == nil {
		return a.queue.Ask(ctx, q), false
	}
	if !a.opt.Alone() {
		a.mu.Lock()
		a.lonely = false
		a.mu.Unlock()
		return a.queue.Ask(ctx, q), false
	}
	a.mu.Lock()
	lonely := a.lonely
	a.mu.Unlock()
	if lonely {
		return decide.Answer{}, true
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	go func() {
		tick := time.NewTicker(aloneEvery)
		defer tick.Stop()
		for end := time.Now().Add(a.opt.Grace); time.Now().Before(end); {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
				if !a.opt.Alone() {
					return
				}
			}
		}
		a.mu.Lock()
		a.lonely = true
		a.mu.Unlock()
		cancel(errAlone)
	}()
	ans = a.queue.Ask(ctx, q)
	return ans, !ans.Allow && context.Cause(ctx) == errAlone
}

// aloneEvery is how often somebody is looked for while nobody is there.
const aloneEvery = 50 * time.Millisecond

// NobodyThere is why an access was refused that nobody was asked about.
const NobodyThere = "nobody is there to be asked"

var errAlone = errors.New(NobodyThere)

// silence words why an access was refused that no human answered.
func silence(by string) string {
	switch by {
	case prompt.ByTimeout:
		return "nobody answered in time"
	case prompt.ByFlood:
		return "too many questions"
	case prompt.ByPolicy:
		return "denied by policy while it waited"
	}
	return "nobody waits any more"
}

// Close refuses everything that waits and everything that comes. The record is the caller's to seal.
func (a *Arbiter) Close() {
	a.mu.Lock()
	if a.closed {
		a.mu.Unlock()
		return
	}
	a.closed = true
	close(a.stop)
	a.mu.Unlock()
	a.queue.Close()
}

// Reveal shows a secret file that may be asked about, as an answer would. An earlier no about it is forgotten.
func (a *Arbiter) Reveal(p string, ans decide.Answer) error {
	a.refresh()
	if env, _ := a.environment(); !env.Reveals.Asks[p] {
		return errors.New("fs.reveal does not list it")
	}
	q := decide.Question{Path: p, Op: "read", Secret: true}
	c, err := decide.Means(&q, ans, a.opt.Now())
	if err != nil {
		return err
	}
	a.Revoke(policy.KindPath, p)
	if err := a.commit(q, c); err != nil {
		return err
	}
	a.queue.Recheck()
	return nil
}

// Revoke forgets every answer about a name; what was opened already stays open. It returns how many there were.
func (a *Arbiter) Revoke(kind policy.Kind, name string) int {
	n := a.grants.Revoke(kind, name)
	a.mu.Lock()
	a.seen.clear()
	a.mu.Unlock()
	if n > 0 {
		a.log.revoked(kind, name, n)
	}
	return n
}

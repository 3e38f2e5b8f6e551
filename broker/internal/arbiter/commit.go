package arbiter

import (
	"errors"
	"fmt"
	"strconv"
	"time"

	"sbx.example/sbx/audit"
	"sbx.example/sbx/broker/internal/decide"
	"sbx.example/sbx/broker/internal/policy"
)

// commit makes an answer hold before it takes effect. Its error goes to whoever answered, and the question stays open.
func (a *Arbiter) commit(q decide.Question, c decide.Consent) error {
	env, closed := a.environment()
	if closed {
		return errors.New("the session has ended")
	}
	env.Static, env.NoPrompt = false, false // somebody did answer
	for _, ask := range q.Asks() {
		if v := decide.Decide(ask, env); c.Answer.Allow && v.Decision == decide.Deny {
			return fmt.Errorf("%s: it stays refused", v.Reason)
		}
	}
	if c.Answer.Persist != "" {
		if err := a.persist(c, env.Now); err != nil {
			return err
		}
	}
	for _, g := range c.Covers {
		if err := a.log.granted(q, g, c.Answer); err != nil {
			return fmt.Errorf("the answer cannot be recorded: %w", err)
		}
	}
	for _, g := range c.Covers {
		a.grants.Add(g)
	}
	return nil
}

// persist writes an answer into a policy file.
func (a *Arbiter) persist(c decide.Consent, now time.Time) error {
	if a.opt.Store == nil {
		return errors.New("this session stores no answers: choose session")
	}
	rules, err := c.Rules(now)
	if err != nil {
		return err
	}
	return a.opt.Store(c.Answer.Persist, rules)
}

// recheck settles an open question that has an answer by now: the same one for all that it is about.
func (a *Arbiter) recheck(q decide.Question) (decide.Answer, bool) {
	env, closed := a.environment()
	if closed {
		return decide.Answer{}, true
	}
	var first decide.Decision
	for i, ask := range q.Asks() {
		switch v := decide.Decide(ask, env); {
		case v.Decision == decide.AskHuman, i > 0 && v.Decision != first:
			return decide.Answer{}, false
		default:
			first = v.Decision
		}
	}
	ans := decide.Answer{Allow: first == decide.Allow}
	if q.Secret && ans.Allow {
		ans.Scope, ans.Life = decide.Revealed, decide.Session
	}
	return ans, true
}

// Unrecorded begins the reason of what is refused because it could not be written down.
const Unrecorded = "it cannot be recorded: "

// conclude writes a verdict down and tells those who watch. What cannot be written down is refused.
func (a *Arbiter) conclude(q decide.Ask, v decide.Verdict, by string, begin, now time.Time) decide.Verdict {
	ev := Event{Time: now, Ask: q, Verdict: v, By: by, Latency: max(now.Sub(begin), 0)}
	ev.Repeat = by == "" && a.repeated(q, v)
	if err := a.log.settled(ev); err != nil && v.Decision == decide.Allow {
		v = refusal(Unrecorded + err.Error())
		ev.Verdict = v
		a.mu.Lock()
		a.seen.clear() // what is not on record has no repeats
		a.mu.Unlock()
	}
	a.mu.Lock()
	watch := a.watch
	a.mu.Unlock()
	for _, f := range watch {
		f(ev)
	}
	return v
}

// Refused writes down what an engine refused by itself: what is hidden, or cannot be carried out whatever anybody says.
func (a *Arbiter) Refused(q decide.Ask, v decide.Verdict) {
	v.Decision = decide.Deny
	if q.ID == "" {
		q.ID = a.opt.Prompt.SID + "-" + strconv.FormatUint(a.next.Add(1), 10)
	}
	if _, closed := a.environment(); !closed && a.opt.Record != nil {
		now := a.opt.Now()
		a.conclude(q, v, "", now, now)
	}
}

// object names what an access is about, for tables.
func object(q decide.Ask) string {
	name := q.Path
	switch {
	case q.Kind == policy.KindHost:
		name = fmt.Sprintf("%s:%d", q.Host, q.Port)
	case q.Target != "":
		name = q.Path + "\x00" + q.Target
	}
	return string(q.Kind) + "\x00" + string(policy.AccessOf(q.Op)) + "\x00" + name
}

// outcome words a decision as the record has it.
func outcome(v decide.Verdict) (kind, decision string) {
	if v.Decision == decide.Allow {
		return audit.KindAllow, "allow"
	}
	return audit.KindDeny, "deny"
}

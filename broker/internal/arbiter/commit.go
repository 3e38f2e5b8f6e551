package arbiter

import (
	"errors"
	"fmt"
	"strconv"
	"time"

	"sbx/audit"
	"sbx/broker/internal/decide"
	"sbx/broker/internal/policy"
	"sbx/broker/internal/prompt"
)

// commit makes an answer hold before it takes effect. Its error goes to whoever answered, and the question stays open.
func (a *Arbiter) commit(q prompt.Question, p prompt.Answer) error {
	env, closed := a.environment()
	if closed {
		return errors.New("the session has ended")
	}
	ask, ans := askOf(q), answerOf(p)
	v, g, keep := decide.Apply(ask, ans, env)
	if p.Allow && v.Decision != decide.Allow {
		return fmt.Errorf("%s: it stays refused", v.Reason)
	}
	if !keep {
		return nil
	}
	g.Until = p.Until
	if p.Persist != "" {
		if err := a.persist(ask, ans, p, env.Now); err != nil {
			return err
		}
	}
	if err := a.log.granted(ask, g, p); err != nil {
		return fmt.Errorf("the answer cannot be recorded: %w", err)
	}
	a.keep(ask, g, p)
	return nil
}

// keep adds an answer to those that hold. A link is open only if its own name is as well.
func (a *Arbiter) keep(ask decide.Ask, g decide.Grant, p prompt.Answer) {
	if p.Scope == prompt.Domain {
		if h, err := policy.ParseHostPattern(p.Host + ":*"); err == nil {
			a.mu.Lock()
			a.domains = append(a.domains, domain{h, p.Host, ask.Port, p.Until, p.Allow})
			a.mu.Unlock()
		}
		return
	}
	a.grants.Add(g)
	if p.Allow && ask.Target != "" && ask.Target != ask.Path {
		n := g
		n.Name, n.Scope = ask.Path, decide.File
		a.grants.Add(n)
	}
}

// persist writes an answer into a policy file.
func (a *Arbiter) persist(ask decide.Ask, ans decide.Answer, p prompt.Answer, now time.Time) error {
	if a.opt.Store == nil {
		return errors.New("this session stores no answers: choose session")
	}
	r, err := decide.Rule(ask, ans, now)
	if err == nil && p.Scope == prompt.Domain {
		r.Pattern = fmt.Sprintf("%s:%d", p.Host, ask.Port)
		r, err = policy.NewRule(r, policy.Vars{})
	}
	if err != nil {
		return err
	}
	rules := []policy.Rule{r}
	if p.Allow && ask.Target != "" && ask.Target != ask.Path {
		name := ask
		name.Target = ""
		ans.Scope = decide.File
		if r, err = decide.Rule(name, ans, now); err != nil {
			return err
		}
		rules = append(rules, r)
	}
	return a.opt.Store(p.Persist, rules)
}

// recheck settles an open question that has an answer by now.
func (a *Arbiter) recheck(q prompt.Question) (prompt.Answer, bool) {
	env, closed := a.environment()
	if closed {
		return prompt.Answer{}, true
	}
	ask := askOf(q)
	switch v := decide.Decide(ask, env); v.Decision {
	case decide.Allow:
		return prompt.Answer{Allow: true}, true
	case decide.Deny:
		return prompt.Answer{}, true
	}
	allow, found := a.domainAnswer(ask, env.Now)
	return prompt.Answer{Allow: allow}, found
}

// conclude writes a verdict down and tells those who watch. What cannot be written down is refused.
func (a *Arbiter) conclude(q decide.Ask, v decide.Verdict, by string, begin, now time.Time) decide.Verdict {
	ev := Event{Time: now, Ask: q, Verdict: v, By: by, Latency: max(now.Sub(begin), 0)}
	ev.Repeat = by == "" && a.repeated(q, v)
	if err := a.log.settled(ev); err != nil && v.Decision == decide.Allow {
		v = refusal("it cannot be recorded: " + err.Error())
		ev.Verdict = v
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

// defers enters an access that is recorded when it has gone on, unless it is too late for that.
func (a *Arbiter) defers() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.closed {
		a.late++
	}
	return !a.closed
}

func (a *Arbiter) deferred() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.late--; a.late == 0 && a.drained != nil {
		close(a.drained)
	}
}

// drain waits for what defers has let in.
func (a *Arbiter) drain() {
	a.mu.Lock()
	n, drained := a.late, make(chan struct{})
	a.drained = drained
	a.mu.Unlock()
	if n == 0 {
		return
	}
	select {
	case <-drained:
	case <-time.After(time.Second): // an access on a disk that does not answer
	}
}

package arbiter

import (
	"slices"
	"strings"
	"time"

	"sbx/broker/internal/decide"
	"sbx/broker/internal/policy"
	"sbx/broker/internal/prompt"
)

// questionOf words an access for a human. Operations are named by the right that is asked for: two accesses that make one question
// must need the same right, because one answer settles both.
func questionOf(a decide.Ask, v decide.Verdict) prompt.Question {
	q := prompt.Question{PID: a.PID, Inside: a.Inside, Exe: a.Exe, Cwd: a.Cwd, Op: a.Op, Path: a.Path, Target: a.Target, Why: v.Reason,
		Dir: slices.Contains(a.Flags, "dir"), Many: slices.Contains(a.Flags, "merged")}
	if v.Rule != "" {
		q.Why += " (" + v.Rule + ", " + v.Origin + ")"
	}
	switch {
	case a.Kind == policy.KindHost:
		q.Host, q.Port, q.Path, q.Op = a.Host, a.Port, "", "connect"
		if a.Op == decide.Lookup {
			q.Op = a.Op
			q.Why += "; looked up, so the port is a guess: another is another question"
		}
	case a.Kind == policy.KindSocket || slices.Contains(a.Flags, "socket"):
		q.Op = "connect"
	case a.Kind == policy.KindExec:
		q.Op = "exec"
	default:
		switch policy.AccessOf(a.Op) {
		case policy.Exec:
			q.Op = "exec"
		case policy.Write, policy.Connect:
			q.Op = "write"
		}
	}
	return q
}

// askOf is the access that a question stands for.
func askOf(q prompt.Question) decide.Ask {
	a := decide.Ask{ID: q.ID, PID: q.PID, Inside: q.Inside, Exe: q.Exe, Cwd: q.Cwd, Op: q.Op, Kind: policy.KindPath, Path: q.Path, Target: q.Target, Host: q.Host, Port: q.Port}
	switch {
	case q.Host != "":
		a.Kind = policy.KindHost
	case q.Op == "connect":
		a.Kind = policy.KindSocket
	case q.Op == "exec":
		a.Kind = policy.KindExec
	}
	if q.Dir {
		a.Flags = append(a.Flags, "dir")
	}
	if q.Many {
		a.Flags = append(a.Flags, "merged")
	}
	return a
}

// answerOf is a prompt's answer in the words of decide.
func answerOf(p prompt.Answer) decide.Answer {
	d := decide.Answer{Allow: p.Allow, Until: p.Until, By: p.By}
	switch p.Scope {
	case prompt.File, prompt.HostScope, prompt.Domain:
		d.Scope = decide.File
	case prompt.Dir:
		d.Scope = decide.Dir
	case prompt.Tree:
		d.Scope = decide.Tree
	}
	switch p.Life {
	case prompt.ForSession:
		d.Life = decide.Session
	case prompt.ForUntil:
		d.Life = decide.Until
	case prompt.Forever:
		d.Life = decide.Forever
	}
	return d
}

// domain is an answer about all names below a domain, at one port.
type domain struct {
	pattern policy.HostPattern
	name    string
	port    int
	until   time.Time // zero: to the session's end
	allow   bool
}

// domainAnswer finds the last answer about a domain that covers a host.
func (a *Arbiter) domainAnswer(q decide.Ask, now time.Time) (allow, found bool) {
	if q.Kind != policy.KindHost {
		return false, false
	}
	h, err := policy.ParseHost(q.Host)
	if err != nil {
		return false, false
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, d := range a.domains {
		if d.port == q.Port && (d.until.IsZero() || now.Before(d.until)) && d.pattern.Match(h, q.Port, true) {
			allow, found = d.allow, true
		}
	}
	return allow, found
}

// dropDomains forgets a domain; a.mu is held.
func (a *Arbiter) dropDomains(name string, kind policy.Kind) int {
	if kind != policy.KindHost {
		return 0
	}
	n := len(a.domains)
	a.domains = slices.DeleteFunc(a.domains, func(d domain) bool { return d.name == name || strings.TrimPrefix(d.name, "*.") == name })
	return n - len(a.domains)
}

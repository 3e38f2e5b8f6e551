package prompt

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Scope is how far an answer reaches.
type Scope string

// The scopes. Once covers the accesses that wait at this moment and nothing after them.
const (
	Once      Scope = "once"
	File      Scope = "file"
	Dir       Scope = "dir"  // the names directly in the directory
	Tree      Scope = "tree" // everything below the directory
	HostScope Scope = "host"
	Domain    Scope = "domain"
)

// Life is how long an answer holds.
type Life string

// The lives.
const (
	ForOnce    Life = "once"
	ForSession Life = "session"
	ForUntil   Life = "until"
	Forever    Life = "forever"
	ForHour    Life = "1h" // what a key means by a while: until an hour from now
)

// Who answered.
const (
	ByTTY     = "tty"
	BySocket  = "socket"
	ByHook    = "hook"
	ByTimeout = "timeout"
	ByFlood   = "flood"
	ByPolicy  = "policy"
	ByGone    = "gone" // nobody waits any more, or the session ended
)

// Answer is a decision. The object it is about is the question's and is filled in by the queue: an
// answer from outside names no path.
type Answer struct {
	Allow   bool
	Scope   Scope
	Life    Life
	Until   time.Time
	Persist string // "", user, project or org: the store that keeps it
	By      string
	Path    string // file for once and file, directory for dir and tree
	Host    string // host, or *.domain
}

// Normal fills in what an answer leaves open and refuses what does not fit the question.
func (a Answer) Normal(q *Question, now time.Time) (Answer, error) {
	if a.Life == ForHour {
		a.Life, a.Until = ForUntil, now.Add(time.Hour)
	}
	a.fill(q)
	if err := a.fits(q); err != nil {
		return Answer{}, err
	}
	switch {
	case a.Life == ForUntil && !a.Until.After(now):
		return Answer{}, errors.New("life until needs a time in the future: give until as RFC 3339 or a duration such as 1h")
	case a.Life != ForUntil && !a.Until.IsZero():
		return Answer{}, fmt.Errorf("until is given but life is %s: use life until", a.Life)
	case a.Persist != "" && a.Life != Forever && a.Life != ForUntil:
		return Answer{}, fmt.Errorf("life %s is not stored: persist needs life forever or until", a.Life)
	}
	if a.Life == ForOnce {
		a.Scope = Once // whatever was named: nothing is kept, and what waits is all that it covers
	}
	a.Path, a.Host = "", ""
	switch a.Scope {
	case Dir, Tree:
		a.Path = q.dir()
	case Domain:
		a.Host = q.Domain()
	default:
		a.Path, a.Host = q.Path, q.Host
	}
	return a, nil
}

func (a *Answer) fill(q *Question) {
	if a.Life == "" {
		switch {
		case a.Persist != "":
			a.Life = Forever
		case !a.Until.IsZero():
			a.Life = ForUntil
		case a.Scope == "" || a.Scope == Once:
			a.Life = ForOnce
		default:
			a.Life = ForSession
		}
	}
	if a.Scope == "" {
		a.Scope = q.Default()
	}
	if a.Life == ForOnce && a.Scope == q.Default() {
		a.Scope = Once
	}
	if a.Life == Forever && a.Persist == "" {
		a.Persist = "user"
	}
}

func (a *Answer) fits(q *Question) error {
	switch a.Life {
	case ForOnce, ForSession, ForUntil, Forever:
	default:
		return fmt.Errorf("unknown life %.40q: use once, session, until or forever", a.Life)
	}
	switch a.Persist {
	case "", "user", "project", "org":
	default:
		return fmt.Errorf("unknown store %.40q: use user, project or org", a.Persist)
	}
	net := q.Host != ""
	switch a.Scope {
	case Once:
		if a.Life != ForOnce {
			return fmt.Errorf("scope once cannot last: leave life out instead of %s", a.Life)
		}
		return nil
	case File:
		if q.Many {
			return errors.New("the question is about the names in a directory: use scope once, dir or tree")
		}
	case Dir, Tree, HostScope, Domain:
	default:
		return fmt.Errorf("unknown scope %.40q: use once, file, dir, tree, host or domain", a.Scope)
	}
	if host := a.Scope == HostScope || a.Scope == Domain; host != net {
		return fmt.Errorf("scope %s does not fit %s", a.Scope, map[bool]string{true: "a host: use once, host or domain", false: "a path: use once, file, dir or tree"}[net])
	}
	if a.Scope == Domain && q.Domain() == "" {
		return errors.New("the host has no domain that could be granted: use scope host")
	}
	if (a.Scope == Dir || a.Scope == Tree) && q.dir() == "/" && a.Allow {
		return errors.New("scope " + string(a.Scope) + " would grant the root directory: use scope once or file")
	}
	return nil
}

// ParseLife reads the words of --for and of the protocol: once, session, forever, until, or a duration.
func ParseLife(s string, now time.Time) (Life, time.Time, error) {
	switch l := Life(s); l {
	case "", ForOnce, ForSession, ForUntil, Forever:
		return l, time.Time{}, nil
	}
	d, err := time.ParseDuration(s)
	if err != nil || d <= 0 || d > 10*365*24*time.Hour {
		return "", time.Time{}, fmt.Errorf("unknown life %.40q: use once, session, forever or a duration such as 1h", s)
	}
	return ForUntil, now.Add(d), nil
}

// ParseWords reads the short form of a hook: allow|deny [scope] [life], in this order.
func ParseWords(s string, now time.Time) (a Answer, err error) {
	w := strings.Fields(s)
	if len(w) == 0 || len(w) > 3 {
		return a, errors.New("want allow or deny, then a scope and a life at will")
	}
	switch w[0] {
	case "allow":
		a.Allow = true
	case "deny":
	default:
		return a, fmt.Errorf("unknown answer %.40q: use allow or deny", w[0])
	}
	for _, x := range w[1:] {
		switch sc := Scope(x); sc {
		case Once, File, Dir, Tree, HostScope, Domain:
			if a.Scope != "" || a.Life != "" {
				return Answer{}, fmt.Errorf("unexpected word %.40q", x)
			}
			a.Scope = sc
			continue
		}
		if a.Life != "" {
			return Answer{}, fmt.Errorf("unexpected word %.40q", x)
		}
		if a.Life, a.Until, err = ParseLife(x, now); err != nil {
			return Answer{}, err
		}
	}
	return a, nil
}

func itoa(n int) string { return strconv.Itoa(n) }

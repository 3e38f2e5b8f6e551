package prompt

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"sbx.example/sbx/broker/internal/decide"
)

// Questions and answers are decide's; these are its names for those who show questions and take answers.
type (
	Question = decide.Question
	Name     = decide.Name
	Answer   = decide.Answer
	Scope    = decide.Scope
	Life     = decide.Life
)

// The scopes and lives of decide.
const (
	Once       = decide.Once
	File       = decide.File
	Dir        = decide.Dir
	Tree       = decide.Tree
	Walk       = decide.Walk
	App        = decide.App
	HostScope  = decide.HostScope
	Domain     = decide.Domain
	Program    = decide.Program
	Everything = decide.Everything
	Revealed   = decide.Revealed
	ForOnce    = decide.LifeOnce
	ForSession = decide.Session
	ForUntil   = decide.Until
	Forever    = decide.Forever
	ForHour    = decide.Hour
)

// Who answered.
const (
	ByTTY     = "tty"
	BySocket  = "socket"
	ByHook    = "hook"
	ByProgram = "program" // the one that runs the session
	ByTimeout = "timeout"
	ByFlood   = "flood"
	ByPolicy  = "policy"
	ByGone    = "gone" // nobody waits any more, or the session ended
)

// IsMeant says whether somebody has answered, and not the lack of an answer.
func IsMeant(by string) bool { return by == ByTTY || by == BySocket || by == ByHook || by == ByProgram }

// parseLife reads the words of --for and of the protocol: once, session, forever, until, or a duration.
func parseLife(s string, now time.Time) (Life, time.Time, error) {
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

// parseWords reads the short form of a hook: allow|deny [scope] [life], in this order.
func parseWords(s string, now time.Time) (a Answer, err error) {
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
		case Once, File, Dir, Tree, Walk, App, HostScope, Domain, Program, Everything, Revealed:
			if a.Scope != "" || a.Life != "" || a.Allow && silences(sc) {
				return Answer{}, fmt.Errorf("unexpected word %.40q", x)
			}
			a.Scope = sc
			continue
		}
		if a.Life != "" {
			return Answer{}, fmt.Errorf("unexpected word %.40q", x)
		}
		if a.Life, a.Until, err = parseLife(x, now); err != nil {
			return Answer{}, err
		}
	}
	return a, nil
}

func itoa(n int) string { return strconv.Itoa(n) }

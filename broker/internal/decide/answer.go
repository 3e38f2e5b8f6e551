package decide

import (
	"errors"
	"fmt"
	"time"
)

// Scope is how far an answer reaches.
type Scope string

// The scopes. Each is about the right that the question names and no other.
const (
	Once      Scope = "once"   // the accesses that wait at this moment, and nothing after them
	File      Scope = "file"   // the objects that wait: of a directory its names, or the directory itself
	Dir       Scope = "dir"    // what lies directly in the directory
	Tree      Scope = "tree"   // everything below the directory
	Walk      Scope = "walk"   // everything below the directory in which the program's walk began
	App       Scope = "app"    // the program's own directories; a yes reads or writes each as the question says
	HostScope Scope = "host"   // the host at this port
	Domain    Scope = "domain" // all hosts of the domain at this port
	Revealed  Scope = "reveal" // the secret file that the question names, read-only; nothing else shows one
	// Refusals of what would be asked about, whatever it is: of this program's, and of everything as in static mode.
	Program    Scope = "program"
	Everything Scope = "everything"
)

// Life is how long an answer holds.
type Life string

// The lives.
const (
	LifeOnce Life = "once"
	Session  Life = "session"
	Until    Life = "until"
	Forever  Life = "forever"
	Hour     Life = "1h" // what a key means by a while: until an hour from now
)

// Lasts says whether something holds after those who wait have gone on.
func (l Life) Lasts() bool { return l != "" && l != LifeOnce }

// Answer is a decision. It names no object: an answer is about the question that was asked, nothing else. See Means.
type Answer struct {
	Allow   bool
	Scope   Scope
	Life    Life
	Until   time.Time
	Persist string // "", user, project or org: the store that keeps it
	By      string // who or what answered
	// Last is the last of the accesses that the question was shown with, see Question: who has joined since is asked
	// about anew by an answer for this once. 0: as it was when it was asked.
	Last int
}

// Normal fills in what an answer leaves open and refuses what does not fit the question.
func (a Answer) Normal(q *Question, now time.Time) (Answer, error) {
	if a.Life == Hour {
		a.Life, a.Until = Until, now.Add(time.Hour)
	}
	a.fill(q)
	if err := a.fits(q); err != nil {
		return Answer{}, err
	}
	switch {
	case a.Life == Until && !a.Until.After(now):
		return Answer{}, errors.New("life until needs a time in the future: give until as RFC 3339 or a duration such as 1h")
	case a.Life != Until && !a.Until.IsZero():
		return Answer{}, fmt.Errorf("until is given but life is %s: use life until", a.Life)
	case a.Persist != "" && a.Life != Forever && a.Life != Until:
		return Answer{}, fmt.Errorf("life %s is not stored: persist needs life forever or until", a.Life)
	}
	if a.Life == LifeOnce && q.Secret { // what is refused does not exist, and then it does so for a while
		a.Scope, a.Life = File, Session
	}
	if a.Life == LifeOnce {
		a.Scope = Once // whatever was named: nothing is kept, and what waits is all that it covers
	}
	return a, nil
}

// Default is the scope that session and forever mean when no other is named.
func (q *Question) Default() Scope {
	if q.Host != "" {
		return HostScope
	}
	return File
}

func (a *Answer) fill(q *Question) {
	if a.Life == "" {
		switch {
		case a.Persist != "":
			a.Life = Forever
		case !a.Until.IsZero():
			a.Life = Until
		case a.Scope == "" || a.Scope == Once:
			a.Life = LifeOnce
		default:
			a.Life = Session
		}
	}
	if a.Scope == "" {
		a.Scope = q.Default()
	}
	if a.Life == LifeOnce && a.Scope == q.Default() {
		a.Scope = Once
	}
	if a.Life == Forever && a.Persist == "" {
		a.Persist = "user"
	}
}

func (a *Answer) fits(q *Question) error {
	switch a.Life {
	case LifeOnce, Session, Until, Forever:
	default:
		return fmt.Errorf("unknown life %.40q: use once, session, until or forever", a.Life)
	}
	switch a.Persist {
	case "", "user", "project", "org":
	default:
		return fmt.Errorf("unknown store %.40q: use user, project or org", a.Persist)
	}
	if err := a.reveals(q); err != nil {
		return err
	}
	if q.Alone() && a.Allow && a.Life != LifeOnce {
		return errors.New("this is asked about each time: allow it once")
	}
	net := q.Host != ""
	if a.Allow && (a.Life == Forever || a.Persist != "") && !q.Lasting() {
		return errors.New("who is in contact now is this session's matter: answer for the session at most")
	}
	switch a.Scope {
	case Once:
		if a.Life != LifeOnce {
			return fmt.Errorf("scope once cannot last: leave life out instead of %s", a.Life)
		}
		return nil
	case Program, Everything:
		return a.silences(q)
	case File, Dir, Tree, Walk, App, HostScope, Domain, Revealed:
	default:
		return fmt.Errorf("unknown scope %.40q: use once, file, dir, tree, walk, app, host, domain, reveal, program or "+
			"everything", a.Scope)
	}
	if host := a.Scope == HostScope || a.Scope == Domain; host != net {
		fits := "a path: use once, file, dir or tree"
		if net {
			fits = "a host: use once, host or domain"
		}
		return fmt.Errorf("scope %s does not fit %s", a.Scope, fits)
	}
	return a.reaches(q)
}

// reveals holds that a secret is shown by the scope that says so, for the session at most, and that nothing else is.
func (a *Answer) reveals(q *Question) error {
	switch {
	case a.Scope == Revealed && !q.Secret:
		return errors.New("scope reveal is for a question about a secret: use once, file, dir or tree")
	case a.Scope == Revealed && !a.Allow:
		return errors.New("scope reveal is for a yes: use once or file")
	case !q.Secret:
		return nil
	case a.Allow && a.Scope != Revealed:
		return errors.New("this shows a secret, which only scope reveal does")
	case a.Allow && (a.Life == Forever || a.Persist != ""):
		return errors.New("an answer shows a secret for the session at most: sbx secret allow writes a rule")
	case a.Allow && a.Life == LifeOnce:
		return errors.New("a program opens a file more than once: show the secret for the session, or for a time")
	case !a.Allow && (a.Scope == Dir || a.Scope == Tree || a.Scope == Walk || a.Scope == App):
		return fmt.Errorf("scope %s does not fit a secret: use once or file", a.Scope)
	}
	return nil
}

// silences refuses what cannot be said of all further questions: they are refused, for the session at most.
func (a *Answer) silences(q *Question) error {
	switch {
	case a.Allow:
		return fmt.Errorf("scope %s is for a no: use once, file, dir or tree", a.Scope)
	case a.Life == Forever || a.Persist != "":
		return fmt.Errorf("scope %s lasts as long as the session at most: leave life and persist out", a.Scope)
	case a.Scope == Program && q.Exe == "":
		return errors.New("the program is not known: use scope once or everything")
	}
	return nil
}

// reaches refuses a scope that the question does not offer.
func (a *Answer) reaches(q *Question) error {
	switch {
	case a.Scope == Domain && q.Domain() == "":
		return errors.New("the host has no domain that could be granted: use scope host")
	case a.Scope == Walk && q.Walk == "":
		return errors.New("the program goes through no directory: use scope once, file, dir or tree")
	case a.Scope == App && !q.OffersApp():
		return errors.New("this is about no directory of the program's own: use scope once, file, dir or tree")
	case a.Allow && (a.Scope == Walk && q.Walk == "/" || (a.Scope == Dir || a.Scope == Tree) && q.Container() == "/"):
		return errors.New("scope " + string(a.Scope) + " would grant the root directory: use scope once or file")
	}
	return nil
}

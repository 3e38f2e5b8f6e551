package decide

import (
	"cmp"
	"errors"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"sbx.example/sbx/broker/internal/policy"
	"sbx.example/sbx/broker/internal/policy/pathname"
	"sbx.example/sbx/broker/internal/policy/peer"
)

// Consent is what an answer to a question means. It is the only place that says so: what a key's text says, what the
// session grants, what a rule covers and what the record has are made from it.
type Consent struct {
	Answer Answer // complete, see Answer.Normal
	// Covers are what is granted or refused from now on. Empty with Once: that is for the accesses that wait, and for
	// their processes.
	Covers   []Grant
	question *Question
	at       time.Time
}

// Means says what an answer to a question means.
func Means(q *Question, a Answer, now time.Time) (Consent, error) {
	a, err := a.Normal(q, now)
	if err != nil {
		return Consent{}, err
	}
	c := Consent{Answer: a, question: q, at: now}
	if a.Scope == Once {
		return c, nil
	}
	if a.Scope == Program || a.Scope == Everything {
		g := Grant{Scope: a.Scope, Life: a.Life, Until: a.Until}
		if a.Scope == Program {
			g.Name = q.Exe
		}
		c.Covers = []Grant{g}
		return c, nil
	}
	right := q.Right()
	cover := func(g Grant) {
		g.Access = cmp.Or(g.Access, right)
		g.Allow, g.Life, g.Until, g.Labels, g.Others = a.Allow, a.Life, a.Until, q.Labels, q.Others
		c.Covers = append(c.Covers, g)
	}
	asks := q.Asks()
	kind := asks[0].Kind
	switch a.Scope {
	case HostScope:
		cover(Grant{Kind: kind, Name: asks[0].name(), Port: q.Port, Scope: File})
	case Domain:
		cover(Grant{Kind: kind, Name: q.Domain(), Port: q.Port, Scope: Domain})
	case Dir, Tree:
		scope := a.Scope
		if q.Whole {
			scope = Tree
		}
		cover(Grant{Kind: kind, Name: q.Container(), Dir: true, Scope: scope})
	case Walk:
		cover(Grant{Kind: kind, Name: q.Walk, Dir: true, Scope: Tree})
	case App:
		for _, g := range q.app(a.Allow) {
			cover(g)
		}
	case Revealed:
		cover(Grant{Kind: kind, Name: asks[0].about(), Scope: Revealed})
	}
	for _, w := range asks { // what waits is always part of it
		if len(c.Covers) > 0 && kind == policy.KindHost ||
			slices.ContainsFunc(c.Covers, func(g Grant) bool { return g.reaches(w.about()) }) {
			continue
		}
		g := Grant{Kind: kind, Name: w.about(), Dir: w.has("dir"), Scope: File}
		if q.Whole {
			g.Scope = Tree
		}
		cover(g)
	}
	if q.Target != "" && q.Target != q.Path && a.Allow { // a link is open only if its own name is as well
		cover(Grant{Kind: kind, Name: q.Path, Dir: q.Dir, Scope: File})
	}
	return c, nil
}

// About is the question that was answered.
func (c Consent) About() *Question { return c.question }

// about is the path that would be opened up.
func (a Ask) about() string {
	if a.Target != "" && a.Kind != policy.KindHost {
		return a.Target
	}
	return a.name()
}

// Rules are the policy rules that make an answer last: one for each thing that it covers. The root directory as a whole
// is refused: such a rule is to be written by hand.
func (c Consent) Rules(now time.Time) ([]policy.Rule, error) {
	var out []policy.Rule
	for _, g := range c.Covers {
		if g.silences() {
			return nil, errors.New("making a rule of the answer: no rule says that nothing is asked about any more")
		}
		by := c.Answer.by()
		r := policy.Rule{Kind: g.Kind, Access: g.Access, Decision: policy.Deny, Reason: "answered by " + by, By: by,
			Added: now.UTC().Truncate(time.Second)}
		if g.Allow {
			r.Decision = policy.Allow
			if g.Kind == policy.KindHost || g.Kind == policy.KindSocket {
				r.Accepts = g.Labels
			}
		}
		if g.Life == Until {
			r.Expires = g.Until.UTC()
		}
		if g.Scope != File && g.Name == "/" {
			return nil, errors.New("making a rule of the answer: it would cover the whole file system; " +
				"choose the file, or write the rule yourself")
		}
		var err error
		if r.Pattern, err = g.pattern(); err != nil {
			return nil, err
		}
		if r, err = policy.NewRule(r, policy.Vars{}); err != nil {
			return nil, err
		}
		out = append(out, r)
	}
	return out, nil
}

// pattern is what a rule says that covers what g does.
func (g Grant) pattern() (string, error) {
	if g.Kind == policy.KindHost {
		if g.Scope == Domain {
			return g.Name + ":" + strconv.Itoa(g.Port), nil
		}
		h, err := peer.Parse(g.Name)
		if err != nil {
			return "", err
		}
		return hostPattern(h, g.Port), nil
	}
	p := strings.TrimSuffix(pathname.Escape(g.Name), "/")
	switch g.Scope {
	case Dir:
		return p + "/*", nil
	case Tree:
		return p + "/**", nil
	}
	return pathname.Escape(g.Name), nil
}

func hostPattern(h peer.Host, port int) string {
	name := h.String()
	if h.Addr.Is6() {
		name = "[" + name + "]"
	}
	if port == 0 {
		return name + ":*"
	}
	return name + ":" + strconv.Itoa(port)
}

// Text says what an answer means. name words a path.
func (c Consent) Text(name func(string) string) string {
	q, a := c.question, c.Answer
	if a.Scope == Once {
		switch {
		case !a.Allow && q.Op == Decoy:
			return "no: the session ends (so do Escape, Ctrl-C and silence)"
		case !a.Allow && q.Walk != "":
			return "no, this time, and no to what else it comes to in " + name(slash(q.Walk)) +
				" (so does Escape, Ctrl-C and silence)"
		case !a.Allow:
			return "no, this time (so does Escape, Ctrl-C and silence)"
		}
		return "this time: " + q.waits() + ", stores nothing"
	}
	if len(c.Covers) == 1 && c.Covers[0].silences() {
		return "no to " + c.What(name) + c.span()
	}
	if !a.Allow {
		return "never " + c.What(name) + c.span()
	}
	return c.What(name) + c.span()
}

// What says what an answer that lasts is about, without how long.
func (c Consent) What(name func(string) string) string {
	if len(c.Covers) == 1 && c.Covers[0].silences() {
		return c.Covers[0].words(name)
	}
	said := ""
	for i, g := range c.Covers {
		switch {
		case i == 0 || g.Access != c.Covers[i-1].Access:
			said += map[bool]string{true: ", and "}[i > 0] + c.verb(g) + " "
		default:
			said += ", "
		}
		said += g.words(name)
	}
	if heard := c.question.Labels; c.Answer.Allow && c.question.Right() == policy.Connect && len(heard) > 0 {
		said += ", which may then hear of " + strings.Join(heard, ", ")
	}
	if c.Answer.Allow && c.question.Everyone && c.question.Right() == policy.Exec {
		said += " (what is run can be read as well)" // it is mounted
	}
	return said
}

// verb words the right of a grant. Only an answer about the program's own directories gives another than was asked for.
func (c Consent) verb(g Grant) string {
	if g.Access == c.question.Right() {
		return c.question.Verb()
	}
	return string(g.Access)
}

// waits words what an answer for this once lets through.
func (q *Question) waits() string {
	switch {
	case q.Many():
		return fmt.Sprintf("the %d accesses that wait now", max(q.Merged, len(q.Paths)))
	case q.Merged > 1:
		return fmt.Sprintf("the %d accesses that wait now", q.Merged)
	case q.Right() == policy.List:
		return "this process lists it"
	case q.Op == Decoy:
		return "the session goes on"
	case q.Everyone:
		return "this access, and every program of the session for two seconds, because it has to be mounted"
	}
	return "this access of this process"
}

// words says what of a directory or file a grant is about.
func (g Grant) words(name func(string) string) string {
	switch {
	case g.Scope == Program:
		return "whatever else " + name(g.Name) + " would ask about"
	case g.Scope == Everything:
		return "everything that would be asked about, as in static mode"
	case g.Kind == policy.KindHost:
		if g.Port == 0 {
			return g.Name
		}
		return g.Name + ":" + strconv.Itoa(g.Port)
	case g.Scope == Dir && g.Access == policy.List:
		return "the directories directly in " + name(slash(g.Name))
	case g.Scope == Dir && g.Access == policy.Read:
		return "what lies directly in " + name(slash(g.Name)) + " (of directories names)"
	case g.Scope == Dir:
		return "what lies directly in " + name(slash(g.Name))
	case g.Scope == Tree && g.Access == policy.List:
		return name(slash(g.Name)) + " and every directory below"
	case g.Scope == Tree:
		return "everything below " + name(slash(g.Name)) + " at every depth"
	case g.Access == policy.List:
		return name(slash(g.Name)) + " (names only)"
	case g.Dir:
		return name(slash(g.Name)) + " itself (not what is in it)"
	}
	return name(g.Name)
}

func slash(dir string) string { return strings.TrimSuffix(dir, "/") + "/" }

// span words how long. What lasts is for every program of the session.
func (c Consent) span() string {
	switch a := c.Answer; {
	case a.Persist == "project":
		return ", always: written to the project's policy"
	case a.Persist != "":
		return ", always: written to your policy"
	case a.Life == Until:
		if a.Until.Sub(c.at) == time.Hour {
			return ", for an hour"
		}
		return ", until " + a.Until.UTC().Format(time.RFC3339)
	}
	return ", until the session ends"
}

// Verdict is the one on one access that waited for the answer, where env has what the answer made hold. What has become
// refused since the question was asked stays refused whatever a human says, and so is what the answer does not cover.
func (ans Answer) Verdict(a Ask, env Env) Verdict {
	// Here somebody did answer, so only rules and hidden things can still refuse.
	env.Static, env.NoPrompt = false, false
	v := Decide(a, env)
	refused := Verdict{Errno: int(syscall.EACCES), Reason: "refused by " + ans.by(), Life: ans.Life, Until: ans.Until,
		Scope: ans.Scope, Path: a.about()}
	switch {
	case v.Secret && (!ans.Allow || ans.Scope != Revealed):
		refused.Errno, refused.Secret = int(syscall.ENOENT), true
		return refused
	case !ans.Allow:
		return refused
	case v.Decision == Deny:
		return v
	case !ans.Life.Lasts():
		return Verdict{Decision: Allow, Scope: Once, Life: LifeOnce, Reason: "granted by " + ans.by(), Path: a.about(),
			Whole: a.has(WholeTree) && env.clean(a.Path, a.access())}
	case v.Decision == Allow:
		v.Reason = "granted by " + ans.by()
		return v
	}
	refused.Reason = "the answer does not cover it"
	return refused
}

func (ans Answer) by() string {
	if ans.By == "" {
		return "the user"
	}
	return ans.By
}

// reaches says whether a grant's scope reaches a path.
func (g Grant) reaches(p string) bool {
	switch g.Scope {
	case Program, Everything:
		return false
	case Dir:
		return p != "/" && path.Dir(p) == g.Name
	case Tree:
		return pathname.Within(p, g.Name)
	}
	return p == g.Name
}

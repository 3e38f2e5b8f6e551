package explain

import (
	"slices"
	"strconv"
	"strings"

	"sbx.example/sbx/broker/internal/host"
	"sbx.example/sbx/broker/internal/planner"
	"sbx.example/sbx/broker/internal/policy"
	"sbx.example/sbx/broker/internal/policy/pathname"
	"sbx.example/sbx/broker/internal/policy/peer"
	"sbx.example/sbx/broker/plan"
)

// Held says which backend would hold such a run, where that is not native, and what of the answers it cannot do.
func (x *Explainer) Held(e *Explanation) {
	if x.Backend != "" && x.Backend != "native" {
		e.Backend = x.Backend
	}
	for i := range e.Answers {
		switch a := &e.Answers[i]; {
		case e.Backend == "":
		case x.Input.InPlace && a.Decision == "absent":
			a.Decision = "deny" // Permission denied; see the loss "absence"
			x.listedAnyway(e.path, a)
		case e.Kind == "host" && a.Decision != "allow" && !x.Input.ShareNet:
			a.Change, a.Once = "none with this backend, which gives no network", ""
		}
	}
	for _, l := range x.Losses {
		if x.concerns(l, e) {
			e.Lost = append(e.Lost, l.String())
		}
	}
}

// listedAnyway says of a hidden directory that its names can be listed: a rule of Landlock's holds for all below.
func (x *Explainer) listedAnyway(p string, a *Answer) {
	l := x.Plan.Landlock
	if p == "" || l == nil || !x.isDir(p) || !slices.ContainsFunc(l.Rules, func(r plan.LandlockRule) bool {
		return r.Access&planner.ListOnly != 0 && host.Within(p, string(r.Path))
	}) {
		return
	}
	if a.Access == string(policy.List) {
		a.Decision, a.Change, a.Once = "allow", "", ""
	}
	a.Reason += "; the names in it can be listed, as Landlock cannot take that away below a directory that is"
}

// concerns says whether a loss is about what was asked for: it is of its kind, or names it or what it lies in.
func (x *Explainer) concerns(l planner.Loss, e *Explanation) bool {
	closed := slices.ContainsFunc(e.Answers, func(a Answer) bool { return a.Decision != "allow" })
	switch l.What {
	case "network", "credentials":
		return e.Kind == "host"
	case "loopback and sockets":
		return e.Kind == "host" || e.Kind == "socket"
	case "absence", "questions":
		return e.path != "" && closed
	case "late secrets":
		return e.path != "" && !closed
	}
	vars := x.Settings.Vars
	vars.Narrow = false
	return slices.ContainsFunc(words(l.What), func(word string) bool {
		if e.Kind == "host" {
			p, err := peer.ParsePattern(word)
			return err == nil && strings.ContainsAny(word, ".:*") && p.MatchHost(e.host)
		}
		p, err := pathname.ParsePattern(word, vars)
		return err == nil && e.path != "" && p.MatchTree(e.path)
	})
}

// words are those of a loss, as Quote has written them: paths, patterns and hosts among them.
func words(s string) (out []string) {
	for s = strings.TrimLeft(s, " ,"); s != ""; s = strings.TrimLeft(s, " ,") {
		if quoted, err := strconv.QuotedPrefix(s); err == nil {
			word, _ := strconv.Unquote(quoted)
			out, s = append(out, word), s[len(quoted):]
			continue
		}
		word, rest, _ := strings.Cut(s, " ")
		out, s = append(out, strings.TrimRight(word, ",")), rest
	}
	return out
}

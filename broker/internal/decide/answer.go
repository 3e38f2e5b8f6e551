package decide

import (
	"fmt"
	"path"
	"strconv"
	"strings"
	"syscall"
	"time"

	"sbx/broker/internal/policy"
)

// Answer is what a human said. It carries no path: an answer is about the question that was asked, nothing else.
type Answer struct {
	Allow bool
	Scope Scope
	Life  Life
	Until time.Time // with Life Until
	By    string    // who or what answered, for the record
}

// Apply turns an answer into a verdict for the waiting call and a grant to keep; keep is false for an answer that
// holds once. What has become refused since the question was asked stays refused whatever the human says.
func Apply(a Ask, ans Answer, env Env) (v Verdict, g Grant, keep bool) {
	// Here somebody did answer, so only rules and hidden things can still refuse.
	env.Static, env.NoPrompt = false, false
	now := Decide(a, env)
	a = a.normal()
	if now.Decision == Deny {
		return now, Grant{}, false
	}
	if a.Target != "" && a.Kind != policy.KindHost {
		a.Path, a.Target = a.Target, ""
	}
	if ans.Life == Until && !ans.Until.After(env.Now) {
		return Verdict{Errno: int(syscall.EACCES), Reason: "the answer had expired"}, Grant{}, false
	}
	g = Grant{Kind: a.Kind, Name: a.name(), Port: a.Port, Access: a.access(), Dir: a.has("dir"), Allow: ans.Allow, Scope: max(ans.Scope, File), Life: ans.Life, Until: ans.Until}
	if g.Scope > File && a.Kind != policy.KindHost {
		g.Name = a.container()
	}
	if a.Kind == policy.KindHost && g.Scope == Tree {
		g.Scope = Dir
	}
	keep = ans.Life != LifeOnce && ans.Scope != Once
	if !keep {
		g.Scope, g.Name = File, a.name()
	}
	if !ans.Allow {
		return Verdict{Errno: int(syscall.EACCES), Reason: "refused by " + ans.by(), Life: ans.Life, Until: ans.Until, Scope: g.Scope, Path: g.Name}, g, keep
	}
	v = env.grantVerdict(a, g)
	v.Whole = a.has("dir") && env.clean(a.Path, a.access())
	v.Reason = "granted by " + ans.by()
	if !keep {
		v.Scope, v.Life, v.Until = Once, LifeOnce, time.Time{}
	}
	return v, g, keep
}

func (ans Answer) by() string {
	if ans.By == "" {
		return "the user"
	}
	return ans.By
}

// container is the directory that a dir or tree answer is about: the path itself if it is one.
func (a Ask) container() string {
	if a.has("dir") || strings.HasPrefix(a.Path, "@") {
		return a.Path
	}
	return path.Dir(a.Path)
}

// Rule is the policy rule that makes an answer last. The root directory as a whole is refused: such a rule is to be
// written by hand.
func Rule(a Ask, ans Answer, now time.Time) (policy.Rule, error) {
	a = a.normal()
	if a.Target != "" {
		a.Path = a.Target
	}
	r := policy.Rule{Kind: a.Kind, Access: a.access(), Decision: policy.Deny, Reason: "answered by " + ans.by(), By: ans.by(), Added: now.UTC().Truncate(time.Second)}
	if ans.Allow {
		r.Decision = policy.Allow
	}
	if ans.Life == Until {
		r.Expires = ans.Until.UTC()
	}
	if a.Kind == policy.KindHost {
		h, err := policy.ParseHost(a.Host)
		if err != nil {
			return r, err
		}
		r.Pattern = hostPattern(h, a.Port, ans.Scope)
		return policy.NewRule(r, policy.Vars{})
	}
	if ans.Scope > File && a.container() == "/" {
		return r, fmt.Errorf("making a rule of the answer: it would cover the whole file system; choose the file, or write the rule yourself")
	}
	switch ans.Scope {
	case Dir:
		r.Pattern = policy.EscapePath(a.container()) + "/*"
	case Tree:
		r.Pattern = policy.EscapePath(a.container()) + "/**"
	default:
		r.Pattern = policy.EscapePath(a.Path)
	}
	return policy.NewRule(r, policy.Vars{})
}

func hostPattern(h policy.Host, port int, s Scope) string {
	name := h.String()
	if h.Addr.Is6() {
		name = "[" + name + "]"
	}
	if s >= Dir || port == 0 {
		return name + ":*"
	}
	return name + ":" + strconv.Itoa(port)
}

func scopeWords() [4]string { return [4]string{"once", "file", "dir", "tree"} }

func (s Scope) String() string { return scopeWords()[s&3] }

func (l Life) String() string { return [4]string{"once", "session", "until", "forever"}[l&3] }

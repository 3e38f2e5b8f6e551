package command

import (
	"path"
	"strings"
	"time"

	"sbx/broker/internal/control"
	"sbx/broker/internal/host"
	"sbx/broker/internal/option"
	"sbx/broker/internal/planner"
	"sbx/broker/internal/policy"
	"sbx/broker/internal/policy/peer"
	"sbx/broker/internal/prompt"
	"sbx/broker/internal/request"
)

// answerRequest is what `sbx approve` and `sbx deny` are told.
type answerRequest struct {
	scope, life, persist string
	revoke               bool
}

func (a *answerRequest) options() []option.Option {
	return []option.Option{
		{Name: "scope", Arg: "SCOPE", Value: option.Choice(&a.scope, "once", "file", "dir", "tree", "walk", "host", "domain"),
			Help: "how far: once (default), file, dir, tree or walk; of a host: host or domain"},
		{Name: "for", Arg: "LIFE", Value: option.Text(&a.life).Suggest("once", "session", "forever"),
			Help: "how long: once, session, forever, or a time such as 1h"},
		{Name: "persist", Arg: "STORE", Value: option.Choice(&a.persist, "user", "project", "org"),
			Help: "the policy file that keeps it: user (default with forever), project or org"},
		{Name: "revoke", Value: option.Switch(&a.revoke),
			Help: "take earlier answers about a PATH or HOST back, in all sessions"},
	}
}

// Approve is sbx approve.
func (t *Term) Approve() Row {
	return t.answerCommand("approve", true, "allow what a question asks")
}

// Deny is sbx deny.
func (t *Term) Deny() Row {
	return t.answerCommand("deny", false, "refuse it; --revoke PATH takes answers back")
}

func (t *Term) answerCommand(name string, allow bool, help string) Row {
	return Row{
		Command: option.Command{Name: name, Args: "ID... [--scope S] [--for L] [--persist P]",
			Full:  "ID... [--scope SCOPE] [--for LIFE] [--persist STORE]\n       sbx " + name + " --revoke PATH|HOST...",
			Help:  help,
			Text:  "Answers questions that wait; sbx watch --once lists them, and 4 characters of an ID are enough.",
			Words: []option.Word{{From: option.Question}}},
		Begin: func([]string) ([]option.Option, func([]string) int) {
			a := &answerRequest{}
			return a.options(), func(words []string) int { return t.answer(name, allow, a, words) }
		},
	}
}

// answer carries out approve and deny.
func (t *Term) answer(name string, allow bool, a *answerRequest, words []string) int {
	if len(words) == 0 {
		return t.Fail(option.Wrong("sbx "+name+" wants the ID of a question", "sbx watch --once lists those that wait"))
	}
	root, err := t.ControlRoot()
	if err != nil {
		return t.Fail(err)
	}
	if a.revoke {
		return t.revoke(root, words)
	}
	word := "deny"
	if allow {
		word = "allow"
	}
	ans, err := prompt.NewAnswer(word, a.scope, a.life, "", a.persist, time.Now())
	if err != nil {
		return t.Fail(option.Wrong("--for: "+err.Error(), ""))
	}
	status := 0
	for _, id := range words {
		if err := answerOne(root, id, ans); err != nil {
			status = t.Fail(&planner.Refusal{What: "answering " + quote(id), Err: err})
		}
	}
	return status
}

func answerOne(root, prefix string, ans prompt.Answer) error {
	sid, id, err := control.Find(root, prefix)
	if err != nil {
		return err
	}
	c, err := control.Dial(root, sid)
	if err != nil {
		return err
	}
	defer c.Close()
	if ans.Allow {
		return c.Approve(id, ans)
	}
	return c.Deny(id, ans)
}

// revoke has every session forget what was answered about names. Rules in policy files are another matter.
func (t *Term) revoke(root string, names []string) int {
	facts := host.Read(t.Env)
	ids, err := control.List(root)
	if err != nil {
		return t.Fail(err)
	}
	for _, n := range names {
		kind, name := policy.KindHost, n
		if strings.HasPrefix(n, "@") {
			kind = policy.KindSocket
		} else if _, err := peer.Parse(strings.TrimPrefix(n, "*.")); err != nil || strings.ContainsAny(n, "/~$") ||
			host.Exists(n) {
			kind = policy.KindPath
			if name, err = option.ExpandPath(n, facts.Home, facts.Cwd, (&request.Request{}).ProjectRoot(facts)); err != nil {
				return t.Fail(option.Wrong("--revoke: "+err.Error(), ""))
			}
			name = path.Clean(name)
		}
		total := 0
		for _, sid := range ids {
			c, err := control.Dial(root, sid)
			if control.IsDead(err) {
				continue
			}
			if err != nil {
				return t.Fail(err)
			}
			count, err := c.Revoke(string(kind), name)
			c.Close()
			if err != nil {
				return t.Fail(&planner.Refusal{What: "revoking " + quote(n) + " in session " + sid, Err: err})
			}
			total += count
		}
		if total == 0 {
			return t.Fail(&planner.Refusal{What: "no session has an answer about " + quote(n),
				Hint: "rules are taken back with sbx policy remove"})
		}
	}
	return 0
}

package command

import (
	"errors"
	"path"
	"strings"
	"time"

	"sbx.example/sbx/broker/internal/control"
	"sbx.example/sbx/broker/internal/decide"
	"sbx.example/sbx/broker/internal/host"
	"sbx.example/sbx/broker/internal/option"
	"sbx.example/sbx/broker/internal/planner"
	"sbx.example/sbx/broker/internal/policy"
	"sbx.example/sbx/broker/internal/policy/peer"
	"sbx.example/sbx/broker/internal/prompt"
	"sbx.example/sbx/broker/internal/request"
)

// answerRequest is what `sbx approve` and `sbx deny` are told.
type answerRequest struct {
	scope, life, persist string
	revoke, json         bool
}

func (a *answerRequest) options(allow bool) []option.Option {
	scopes := []string{"once", "file", "dir", "tree", "walk", "app", "host", "domain"}
	far := "how far: once (default), file, dir, tree, walk or app; of a host: host or domain"
	if allow {
		scopes = append(scopes, "reveal")
		far += "; of a secret: reveal"
	} else {
		scopes = append(scopes, "program", "everything")
		far += "; program and everything: no to whatever else it, or anybody, would ask about"
	}
	return []option.Option{
		{Name: "scope", Arg: "SCOPE", Value: option.Choice(&a.scope, scopes...), Help: far},
		{Name: "for", Arg: "LIFE", Value: option.Text(&a.life).Suggest("once", "session", "forever"),
			Help: "how long: once, session, forever, or a time such as 1h"},
		{Name: "persist", Arg: "STORE", Value: option.Choice(&a.persist, "user", "project", "org"),
			Help: "the policy file that keeps it: user (default with forever), project or org"},
		{Name: "revoke", Value: option.Switch(&a.revoke),
			Help: "take earlier answers about a PATH or HOST back, in all sessions; so for the word everything"},
		JSON(&a.json),
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
			return a.options(allow), func(words []string) int { return t.answer(name, allow, a, words) }
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
	return t.Each("questions", "id", words, func(id string) error {
		q, err := answerOne(root, id, ans)
		if err != nil {
			return &planner.Refusal{What: "answering " + quote(id), Err: err}
		}
		t.sayAnswered(q, ans)
		return nil
	})
}

func answerOne(root, prefix string, ans prompt.Answer) (prompt.Question, error) {
	sid, q, err := control.Find(root, prefix)
	if err != nil {
		return q, err
	}
	return q, inSession(root, sid, func(c *control.Client) error {
		if ans.Allow {
			return c.Approve(q.ID, ans)
		}
		return c.Deny(q.ID, ans)
	})
}

// sayAnswered says what was answered: the words before the id may have been a program's, which changed those of sbx on
// a terminal or in a file.
func (t *Term) sayAnswered(q prompt.Question, ans prompt.Answer) {
	if t.json {
		return
	}
	style := prompt.Style{Home: host.Lookup(t.Env, "HOME")}
	said := style.Whole(q)
	if c, err := decide.Means(&q, ans, time.Now()); err == nil {
		said += ": " + style.Means(c)
	}
	t.Warn(said)
}

// inSession tells a session something.
func inSession(root, sid string, tell func(*control.Client) error) error {
	c, err := control.Dial(root, sid)
	if err != nil {
		return err
	}
	defer c.Close()
	return tell(c)
}

// Reveal has a session that runs show a secret file that it may ask about.
func (t *Term) Reveal(sid, p string, until time.Time) error {
	root, err := t.ControlRoot()
	if err != nil {
		return err
	}
	return inSession(root, sid, func(c *control.Client) error { return c.Reveal(p, until) })
}

// revoke has every session forget what was answered about names. Rules in policy files are another matter.
func (t *Term) revoke(root string, names []string) int {
	facts := host.Read(t.Env)
	ids, err := control.List(root)
	if err != nil {
		return t.Fail(err)
	}
	return t.Each("revoked", "name", names, func(n string) error {
		switch _, notHost := peer.Parse(strings.TrimPrefix(n, "*.")); {
		case strings.HasPrefix(n, "@"):
			return revokeIn(root, ids, n, answered{policy.KindSocket, n})
		case n == string(decide.Everything):
			return revokeIn(root, ids, n, answered{decide.KindEverything, n})
		case notHost != nil || strings.ContainsAny(n, "/~$"):
			p, err := option.ExpandPath(n, facts.Home, facts.Cwd, (&request.Request{}).ProjectRoot(facts))
			if err != nil {
				return option.Wrong("--revoke: "+err.Error(), "")
			}
			return revokeIn(root, ids, n, answered{policy.KindPath, path.Clean(p)})
		}
		// It may be a file's name as well; that there is one says nothing, since a program may have made it.
		return revokeIn(root, ids, n, answered{policy.KindHost, n}, answered{policy.KindPath, path.Join(facts.Cwd, n)})
	})
}

// answered is what an answer was about.
type answered struct {
	kind policy.Kind
	name string
}

// revokeIn has the sessions of ids forget what was answered about some, which were typed as word. One that cannot be
// told keeps no other from it.
func revokeIn(root string, ids []string, word string, about ...answered) error {
	total := 0
	var standing []string
	var why []error
	for _, sid := range ids {
		n, err := revokeAt(root, sid, about)
		if total += n; err != nil {
			standing, why = append(standing, sid), append(why, err)
		}
	}
	switch {
	case len(why) > 0:
		return &planner.Refusal{What: "revoking " + quote(word) + ": an answer may still stand in session " +
			strings.Join(standing, ", "), Err: errors.Join(why...),
			Hint: "sbx kill ends a session that does not answer, and all of its answers"}
	case total == 0:
		return &planner.Refusal{What: "no session has an answer about " + quote(word),
			Hint: "rules are taken back with sbx policy remove"}
	}
	return nil
}

// revokeAt has one session forget and returns how many answers that were. One that has ended, or that asks nobody, has
// none.
func revokeAt(root, sid string, about []answered) (total int, err error) {
	err = inSession(root, sid, func(c *control.Client) error {
		for _, a := range about {
			n, err := c.Revoke(string(a.kind), a.name)
			if total += n; err != nil {
				return err
			}
		}
		return nil
	})
	if control.HasEnded(err) || control.IsNotHere(err) {
		return total, nil
	}
	return total, err
}

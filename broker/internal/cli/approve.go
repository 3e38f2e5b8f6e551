package cli

import (
	"errors"
	"fmt"
	"path"
	"strings"
	"time"

	"sbx/broker/internal/control"
	"sbx/broker/internal/host"
	"sbx/broker/internal/planner"
	"sbx/broker/internal/policy"
	"sbx/broker/internal/prompt"
)

// answerRequest is what `sbx approve` and `sbx deny` are told.
type answerRequest struct {
	scope, life, persist string
	revoke, help         bool
}

func answerOptions(a *answerRequest) []option {
	return []option{
		{name: "scope", arg: "SCOPE", help: "how far: once (default), file, dir or tree; of a host: host or domain", set: put(&a.scope, "once", "file", "dir", "tree", "host", "domain")},
		{name: "for", arg: "LIFE", help: "how long: once, session, forever, or a time such as 1h", set: put(&a.life)},
		{name: "persist", arg: "STORE", help: "the policy file that keeps it: user (default with forever), project or org", set: put(&a.persist, "user", "project", "org")},
		{name: "revoke", help: "take earlier answers about a PATH or HOST back, in all sessions", set: flag(&a.revoke)},
		{name: "help", short: "h", help: "this text", set: flag(&a.help)},
	}
}

func cmdApprove(t *term, args []string) int { return t.answer("approve", true, args) }
func cmdDeny(t *term, args []string) int    { return t.answer("deny", false, args) }

// answer carries out approve and deny.
func (t *term) answer(name string, allow bool, args []string) int {
	var a answerRequest
	table := answerOptions(&a)
	words, err := parseMixed(table, &request{}, args)
	if err != nil {
		return t.fail(err)
	}
	if a.help {
		t.print(fmt.Sprintf("usage: sbx %s ID... [--scope SCOPE] [--for LIFE] [--persist STORE]\n       sbx %s --revoke PATH|HOST...\n\nAnswers questions that wait; sbx watch --once lists them, and 4 characters of an ID are enough.\n\n%s", name, name, optionHelp(table)))
		return 0
	}
	if len(words) == 0 {
		return t.fail(&usageError{"sbx " + name + " wants the ID of a question", "sbx watch --once lists those that wait"})
	}
	root, err := t.controlRoot()
	if err != nil {
		return t.fail(err)
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
		return t.fail(&usageError{"--for: " + err.Error(), ""})
	}
	status := 0
	for _, id := range words {
		if err := answerOne(root, id, ans); err != nil {
			status = t.fail(&planner.Refusal{What: "answering " + quote(id), Err: err})
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
func (t *term) revoke(root string, names []string) int {
	facts := host.Read(t.env)
	ids, err := control.List(root)
	if err != nil {
		return t.fail(err)
	}
	for _, n := range names {
		kind, name := policy.KindHost, n
		if strings.HasPrefix(n, "@") {
			kind = policy.KindSocket
		} else if _, err := policy.ParseHost(strings.TrimPrefix(n, "*.")); err != nil || strings.ContainsAny(n, "/~$") || exists(n) {
			kind = policy.KindPath
			if name, err = expandPath(n, facts.Home, facts.Cwd, t.projectRoot(&request{}, facts)); err != nil {
				return t.fail(&usageError{"--revoke: " + err.Error(), ""})
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
				return t.fail(err)
			}
			count, err := c.Revoke(string(kind), name)
			c.Close()
			if err != nil {
				return t.fail(&planner.Refusal{What: "revoking " + quote(n) + " in session " + sid, Err: err})
			}
			total += count
		}
		if total == 0 {
			return t.fail(&planner.Refusal{What: "no session has an answer about " + quote(n), Hint: "rules are taken back with sbx policy remove"})
		}
	}
	return 0
}

// controlRoot is the folder in which each running session has its socket.
func (t *term) controlRoot() (string, error) {
	root, err := control.Root(host.Lookup(t.env, "XDG_RUNTIME_DIR"), host.Lookup(t.env, "XDG_STATE_HOME"), host.Read(t.env).Home)
	if err != nil {
		return "", &planner.Refusal{What: err.Error()}
	}
	return root, nil
}

// revoked is what a session's socket does when it is told to forget.
func (a *asking) revoked(kind, name string) (int, error) {
	switch k := policy.Kind(kind); k {
	case policy.KindPath, policy.KindSocket, policy.KindHost:
		n := a.arb.Revoke(k, name)
		if a.outlet != nil && k == policy.KindHost && a.outlet.net != nil {
			a.outlet.net.Forget(name)
		}
		switch {
		case k == policy.KindHost:
			return n, nil
		case a.files != nil:
			return n, a.files.revoke(name)
		}
		return n, a.mounts.revoke(name)
	}
	return 0, errors.New("answers are about a path, socket or host")
}

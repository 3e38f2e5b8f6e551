package cli

import (
	"fmt"
	"time"

	"sbx/broker/internal/command"
	"sbx/broker/internal/explain"
	"sbx/broker/internal/host"
	"sbx/broker/internal/option"
	"sbx/broker/internal/planner"
	"sbx/broker/internal/policy"
	"sbx/broker/internal/quoting"
	"sbx/broker/internal/request"
	"sbx/broker/internal/session"
)

func (t *term) whyCommand() command.Row {
	return command.Row{
		Command: option.Command{Name: "why", Args: "PATH|HOST|EVENT", Full: "[OPTIONS of run] PATH|HOST[:PORT]|EVENT",
			Help: "say what decides, where that stands, and what would allow it", Borrows: true,
			Text: "Says which layer decides, by which rule, where that stands and who added it, and the smallest change\n" +
				"that would allow it.",
			Words: []option.Word{{From: option.File}, {}}},
		Begin: func([]string) ([]option.Option, func([]string) int) {
			r := &request.Request{}
			access, kind := "", ""
			own := []option.Option{
				{Name: "access", Arg: "ACCESS", Value: option.Choice(&access, "read", "write", "exec", "connect"),
					Help: "read, write, exec or connect (default: read and write)"},
				{Name: "kind", Arg: "KIND", Value: option.Choice(&kind, "path", "socket", "host"),
					Help: "path, socket or host, where the word does not say it"},
			}
			return append(own, r.Options()...), func(words []string) int { return t.why(r, words, kind, access) }
		},
	}
}

// why says what decides about a path, a host or a past event.
func (t *term) why(r *request.Request, words []string, kind, access string) int {
	if len(words) != 1 || words[0] == "" {
		return t.fail(wrong("usage: sbx why [OPTIONS of run] PATH|HOST[:PORT]|EVENT", "sbx why --help says more"))
	}
	e, err := t.explain(r, words[0], kind, access)
	if err != nil {
		return t.fail(err)
	}
	if r.JSON {
		t.print(command.Encode(e))
		return 0
	}
	t.print(e.Text())
	return 0
}

func policyTest(t *term, c *policyCall) int {
	if len(c.words) != 1 || c.words[0] == "" {
		return t.fail(c.usage("test PATH|HOST[:PORT] [--access ACCESS] [--kind KIND]"))
	}
	if c.access == "" {
		if c.access = "read"; c.kind == "exec" {
			c.access = "exec"
		}
	}
	kind := c.kind
	if kind == "exec" {
		kind = "path"
	}
	e, err := t.explain(&c.r, c.words[0], kind, c.access)
	if err != nil {
		return t.fail(err)
	}
	if c.r.JSON {
		t.print(command.Encode(e))
		return 0
	}
	a := e.Answers[0]
	t.print(fmt.Sprintf("%s %s %s: %s (%s)\n", a.Decision, a.Access, quote(e.Subject), quoting.ASCII(a.Reason), a.Where()))
	return 0
}

// explain answers for one word. Nothing is made, asked or recorded.
func (t *term) explain(r *request.Request, word, kind, access string) (explain.Explanation, error) {
	facts := host.Read(t.Env)
	now := time.Now()
	e := explain.Explanation{Subject: word, Kind: kind, Answers: []explain.Answer{}}
	logs, _, err := session.Logs(host.Lookup(t.Env, "XDG_STATE_HOME"), facts.Home)
	if kind == "" && err == nil && explain.IsEvent(logs, word) {
		if e.Event, err = explain.FindEvent(logs, word); err != nil {
			return e, err
		}
		e.Kind = "event"
		switch ev := e.Event; {
		case ev.Decision == "": // a beginning or an end
			return e, nil
		case ev.Host != "":
			word, kind = ev.Host, "host"
		case ev.Path != "":
			word, kind = ev.Path, "path"
			access = string(policy.AccessOf(ev.Op))
		default:
			return e, nil
		}
	}
	x, err := t.explainer(r, facts, now)
	if err != nil {
		return e, err
	}
	e.Note = x.Note
	return e, x.About(&e, word, kind, access, now)
}

// explainer computes the plan of a run with the options of r, without making anything.
func (t *term) explainer(r *request.Request, facts host.Facts, now time.Time) (*explain.Explainer, error) {
	x, err := t.explainerIn(*r, facts, now)
	if err == nil {
		return x, nil
	}
	// From a place where nothing can be run, such as the home directory, the layers still can be named.
	elsewhere := *r
	elsewhere.Workdir = "/usr"
	y, other := t.explainerIn(elsewhere, facts, now)
	if other != nil {
		return nil, err
	}
	y.Note = err.Error()
	return y, nil
}

func (t *term) explainerIn(q request.Request, facts host.Facts, now time.Time) (*explain.Explainer, error) {
	s, err := t.settings(&q, facts, t.projectRoot(&q, facts))
	if err != nil {
		return nil, err
	}
	r := newRun(q)
	r.argv, r.profile, r.mode = []string{"true"}, s.Profile.Name, s.Mode(facts)
	in, err := t.input(r, s, facts)
	if err != nil {
		return nil, err
	}
	assign(in, "why", "/nonexistent")
	x := &explain.Explainer{Settings: s, Input: in, Sources: t.sources(facts, s.Vars.Project), Static: r.mode != "dynamic"}
	if x.Plan, _, err = planner.Build(*in); err != nil {
		return nil, err
	}
	return x, x.Refresh(now)
}

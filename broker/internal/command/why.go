package command

import (
	"time"

	"sbx.example/sbx/broker/internal/explain"
	"sbx.example/sbx/broker/internal/host"
	"sbx.example/sbx/broker/internal/option"
	"sbx.example/sbx/broker/internal/policy"
	"sbx.example/sbx/broker/internal/request"
	"sbx.example/sbx/broker/internal/session"
)

// Explainer computes the plan of a run with the options of a request, without making anything.
type Explainer func(q *request.Request, facts host.Facts, now time.Time) (*explain.Explainer, error)

// Why is sbx why.
func (t *Term) Why(explainer Explainer) Row {
	return Row{
		Command: option.Command{Name: "why", Args: "PATH|HOST|EVENT|--last",
			Full: "[OPTIONS of run] PATH|HOST[:PORT]|EVENT|--last",
			Help: "say what decides, where that stands, and what would allow it", Borrows: true,
			Text: "Says which layer decides, by which rule, where that stands and who added it, and the smallest change\n" +
				"that would allow it.",
			Words: []option.Word{{From: option.File}, {}}},
		Begin: func([]string) ([]option.Option, func([]string) int) {
			r := &request.Request{}
			access, kind, last := "", "", false
			own := []option.Option{
				{Name: "access", Arg: "ACCESS", Value: option.Choice(&access, "list", "read", "write", "exec", "connect"),
					Help: "list, read, write, exec or connect (default: read and write)"},
				{Name: "kind", Arg: "KIND", Value: option.Choice(&kind, "path", "socket", "host"),
					Help: "path, socket or host, where the word does not say it"},
				{Name: "last", Value: option.Switch(&last), Help: "what was refused last"},
			}
			return append(own, r.Options()...), func(words []string) int {
				if last && len(words) > 0 {
					return t.Fail(option.Wrong("--last takes no name", "sbx why "+words[0]+" is about that alone"))
				}
				if last {
					dir, _, err := t.auditDir(host.Read(t.Env))
					if err == nil {
						words = []string{""}
						words[0], err = explain.LastRefusal(dir)
					}
					if err != nil {
						return t.Fail(err)
					}
				}
				return t.why(explainer, r, words, kind, access)
			}
		},
	}
}

// why says what decides about a path, a host or a past event.
func (t *Term) why(explainer Explainer, r *request.Request, words []string, kind, access string) int {
	if len(words) != 1 || words[0] == "" {
		return t.Fail(option.Wrong("usage: sbx why [OPTIONS of run] PATH|HOST[:PORT]|EVENT", "sbx why --help says more"))
	}
	e, err := t.Explain(explainer, r, words[0], kind, access)
	if err != nil {
		return t.Fail(err)
	}
	if r.JSON {
		t.Print(Encode(e))
		return 0
	}
	t.Say(e.Text())
	return 0
}

// Explain answers for one word. Nothing is made, asked or recorded.
func (t *Term) Explain(explainer Explainer, r *request.Request, word, kind,
	access string) (explain.Explanation, error) {
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
	x, err := explainer(r, facts, now)
	if err != nil {
		return e, err
	}
	e.Note = x.Note
	err = x.About(&e, word, kind, access, now)
	x.Held(&e)
	return e, err
}

package cli

import (
	"cmp"
	"fmt"
	"path"
	"strings"
	"time"

	"sbx/broker/internal/command"
	"sbx/broker/internal/host"
	"sbx/broker/internal/option"
	"sbx/broker/internal/policy"
	"sbx/broker/internal/quoting"
	"sbx/broker/internal/request"
)

// explained is the answer of `sbx why` and `sbx policy test`.
type explained struct {
	Subject string            `json:"subject"`
	Kind    string            `json:"kind"`             // path, socket, host or event
	Target  string            `json:"target,omitempty"` // where the path leads
	Note    string            `json:"note,omitempty"`
	Event   *command.EventRow `json:"event,omitempty"`
	Answers []answerRow       `json:"answers"`
}

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
	t.print(e.text())
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
	t.print(fmt.Sprintf("%s %s %s: %s (%s)\n", a.Decision, a.Access, quote(e.Subject), quoting.ASCII(a.Reason), a.where()))
	return 0
}

// explain answers for one word. Nothing is made, asked or recorded.
func (t *term) explain(r *request.Request, word, kind, access string) (explained, error) {
	facts := host.Read(t.Env)
	now := time.Now()
	e := explained{Subject: word, Kind: kind, Answers: []answerRow{}}
	var ev *command.EventRow
	if kind == "" && t.IsEventID(facts, word) {
		var err error
		if ev, err = t.FindEvent(facts, word); err != nil {
			return e, err
		}
		e.Kind, e.Event = "event", ev
		switch {
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
	e.Note = x.note
	if kind == "host" || kind == "" && !t.looksLikePath(word, facts.Cwd) {
		name, port := splitHostPort(word)
		if ev != nil {
			name, port = ev.Host, ev.Port
		}
		if e.Kind == "" {
			e.Kind = "host"
		}
		row := x.host(name, port)
		reach, _ := x.s.Reach()
		if h, err := policy.ParseHost(name); err == nil && reach != policy.NoHosts { // without a network no rule opens a host
			x.untrusted(policy.Query{Kind: policy.KindHost, Host: h, Port: cmp.Or(port, x.likelyPort(h)), Access: policy.Connect, Now: now}, &row)
		}
		e.Answers = append(e.Answers, row)
		return e, nil
	}
	if strings.HasPrefix(word, "@") {
		e.Kind = "socket"
		e.Answers = append(e.Answers, x.socket(word, word))
		return e, nil
	}
	p, err := option.ExpandPath(word, facts.Home, facts.Cwd, x.in.Project)
	if err != nil {
		return e, wrong(err.Error(), "name a path, a host, or an event of sbx audit")
	}
	canon, _, st, _ := host.Resolve(x.in.FS, p)
	if canon != "" && canon != path.Clean(p) {
		e.Target = canon
	}
	if st.Type == host.Socket || kind == "socket" || policy.HiddenBy(x.env.Hidden, policy.KindSocket, path.Clean(p)) != nil && policy.HiddenBy(x.env.Hidden, policy.KindPath, path.Clean(p)) == nil && st.Type != host.Dir {
		access, kind = "connect", "socket"
	}
	if e.Kind == "" {
		if e.Kind = "path"; kind != "" {
			e.Kind = kind
		}
	}
	list := []policy.Access{policy.Access(access)}
	if access == "" {
		list = []policy.Access{policy.Read, policy.Write}
	}
	for _, a := range list {
		if a == policy.Connect {
			e.Answers = append(e.Answers, x.socket(path.Clean(p), cmp.Or(canon, path.Clean(p))))
			continue
		}
		row := x.path(p, a)
		x.untrusted(policy.Query{Kind: policy.KindPath, Path: cmp.Or(canon, path.Clean(p)), Access: a, Now: now}, &row)
		e.Answers = append(e.Answers, row)
	}
	// What cannot be read cannot be written for the same reason: once is enough.
	if n := len(e.Answers); n == 2 && e.Answers[0].Decision != "allow" && e.Answers[0].Layer == e.Answers[1].Layer && e.Answers[0].Rule == e.Answers[1].Rule {
		e.Answers = e.Answers[:1]
	}
	return e, nil
}

// untrusted names a rule of the project's that would allow what no other layer does, if it counted.
func (x *explainer) untrusted(q policy.Query, row *answerRow) {
	store := x.s.Layers.Policy
	if row.Decision == "allow" || row.Layer != "default" && row.Layer != "network" && row.Layer != "mount" || store.ProjectTrusted {
		return
	}
	store.ProjectTrusted = true
	if r, ok := store.Match(q); ok && r.Decision == policy.Allow && r.Origin.Scope == policy.ScopeProject {
		row.Reason += "; the project's own rule does not count, because the project is not trusted"
		row.from(r.Origin)
		row.Change = "sbx policy trust"
	}
}

// where names the layer and the place of the rule.
func (a answerRow) where() string {
	s := a.Layer
	if a.Rule != "" {
		s += " " + quote(a.Rule)
	}
	switch {
	case a.File != "" && a.Line > 0:
		s += fmt.Sprintf(", %s:%d", quote(a.File), a.Line)
	case a.File != "":
		s += ", " + quote(a.File)
	case a.Scope != "":
		s += ", " + a.Scope
	}
	if a.By != "" {
		s += ", by " + quote(a.By)
	}
	return s
}

func (e explained) text() string {
	var b strings.Builder
	if e.Event != nil {
		b.WriteString(e.Event.Text() + "\n")
	}
	subject, when := e.Subject, ""
	if e.Event != nil {
		subject, when = e.Event.Object(), "a run from here now: "
	}
	for _, a := range e.Answers {
		what := map[string]string{"allow": "allowed", "ask": "asked about", "deny": "refused", "absent": "does not exist inside"}[a.Decision]
		fmt.Fprintf(&b, "%s%s %s: %s: %s\n", when, a.Access, quote(subject), what, quoting.ASCII(a.Reason))
		fmt.Fprintf(&b, "  because  %s\n", a.where())
		if a.Change != "" {
			fmt.Fprintf(&b, "  allow    %s\n", quoting.ASCII(a.Change))
		}
		if a.Once != "" {
			fmt.Fprintf(&b, "  one run  %s\n", quoting.ASCII(a.Once))
		}
	}
	if e.Target != "" {
		fmt.Fprintf(&b, "  leads to %s\n", quote(e.Target))
	}
	if e.Note != "" {
		fmt.Fprintf(&b, "  note     a run from here would be refused: %s\n", quoting.ASCII(e.Note))
	}
	return b.String()
}

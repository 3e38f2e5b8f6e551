package explain

import (
	"cmp"
	"fmt"
	"path"
	"strings"
	"time"

	"sbx.example/sbx/broker/internal/host"
	"sbx.example/sbx/broker/internal/option"
	"sbx.example/sbx/broker/internal/policy"
	"sbx.example/sbx/broker/internal/policy/peer"
	"sbx.example/sbx/broker/internal/quoting"
	"sbx.example/sbx/broker/plan"
)

// Explanation is the answer of `sbx why` and `sbx policy test`.
type Explanation struct {
	Subject string   `json:"subject"`
	Kind    string   `json:"kind"`             // path, socket, host or event
	Target  string   `json:"target,omitempty"` // where the path leads
	Note    string   `json:"note,omitempty"`
	Event   *Event   `json:"event,omitempty"`
	Answers []Answer `json:"answers"`
	Backend string   `json:"backend,omitempty"` // what would hold the run, if that is not native
	Lost    []string `json:"lost,omitempty"`    // what of the answers it cannot do
	path    string   // where the subject leads, if it is one of the file system's
	host    peer.Host
}

// onHost is the host's path of what such a run has at another one (sandbox.workdir_at).
func (x *Explainer) onHost(p string) string {
	if at := x.Settings.Sandbox.WorkdirAt; at != "" {
		return (&plan.Moved{Host: plan.Bytes(x.Input.Project), Inside: plan.Bytes(at)}).OnHost(path.Clean(p))
	}
	return p
}

// About answers for one word; e has what is known of it.
func (x *Explainer) About(e *Explanation, word, kind, access string, now time.Time) error {
	if kind == "" {
		switch is, _ := KindOf(word, x.Input.Facts.Cwd); is {
		case "":
			return Ambiguous(word)
		case policy.KindHost:
			kind = "host"
		}
	}
	if kind == "host" {
		x.aboutHost(e, word, now)
		return nil
	}
	if strings.HasPrefix(word, "@") {
		e.Kind = "socket"
		e.Answers = append(e.Answers, x.socket(word, word))
		return nil
	}
	p, err := option.ExpandPath(word, x.Input.Facts.Home, x.Input.Facts.Cwd, x.Input.Project)
	if err != nil {
		return option.Wrong(err.Error(), "name a path, a host, or an event of sbx audit")
	}
	typed := path.Clean(p)
	p = x.onHost(p)
	canon, _, st, _ := host.Resolve(x.Input.FS, p)
	if e.path = cmp.Or(canon, path.Clean(p)); canon != "" && canon != typed {
		e.Target = canon
	}
	if x.given(path.Clean(p), kind, e) {
		return nil
	}
	if st.Type == host.Socket || kind == "socket" || policy.HiddenBy(x.Env.Hidden, policy.KindSocket,
		path.Clean(p)) != nil && policy.HiddenBy(x.Env.Hidden, policy.KindPath, path.Clean(p)) == nil && st.Type != host.Dir {
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
	e.once()
	return nil
}

// aboutHost answers for a host, or an event's.
func (x *Explainer) aboutHost(e *Explanation, word string, now time.Time) {
	name, port := splitHostPort(word)
	if ev := e.Event; ev != nil {
		name, port = ev.Host, ev.Port
	}
	if e.Kind == "" {
		e.Kind = "host"
	}
	row := x.host(name, port)
	reach, _ := x.Settings.Reach(!x.Static)
	h, err := peer.Parse(name)
	if e.host = h; err == nil && reach != policy.NoHosts { // without a network no rule opens a host
		x.untrusted(policy.Query{Kind: policy.KindHost, Host: h, Port: cmp.Or(port, x.likelyPort(h)),
			Access: policy.Connect, Now: now}, &row)
	}
	e.Answers = append(e.Answers, row)
}

// once leaves out that what cannot be read cannot be written for the same reason.
func (e *Explanation) once() {
	if n := len(e.Answers); n == 2 && e.Answers[0].Decision != "allow" && e.Answers[0].Layer == e.Answers[1].Layer &&
		e.Answers[0].Rule == e.Answers[1].Rule {
		e.Answers = e.Answers[:1]
	}
}

// untrusted names a rule of the project's that would allow what no other layer does, if it counted.
func (x *Explainer) untrusted(q policy.Query, row *Answer) {
	store := x.Settings.Layers.Policy
	if row.Decision == "allow" || row.Layer != "default" && row.Layer != "network" && row.Layer != "mount" ||
		store.ProjectTrusted {
		return
	}
	store.ProjectTrusted = true
	if r, ok := store.Match(q); ok && r.Decision == policy.Allow && r.Origin.Scope == policy.ScopeProject {
		row.Reason += "; the project's own rule does not count, because the project is not trusted"
		row.from(r.Origin)
		row.Change = "sbx policy trust"
	}
}

// Where names the layer and the place of the rule.
func (a Answer) Where() string {
	s := a.Layer
	if a.Rule != "" {
		s += " " + quoting.Quote(a.Rule)
	}
	switch {
	case a.File != "" && a.Line > 0:
		s += fmt.Sprintf(", %s:%d", quoting.Quote(a.File), a.Line)
	case a.File != "":
		s += ", " + quoting.Quote(a.File)
	case a.Scope != "":
		s += ", " + a.Scope
	}
	if a.By != "" {
		s += ", by " + quoting.Quote(a.By)
	}
	return s
}

func (e Explanation) Text() string {
	var b strings.Builder
	if e.Event != nil {
		b.WriteString(e.Event.Text() + "\n")
	}
	subject, when := e.Subject, ""
	if e.Event != nil {
		subject, when = e.Event.Object(), "a run from here now: "
	}
	for _, a := range e.Answers {
		what := map[string]string{"allow": "allowed", "ask": "asked about", "deny": "refused",
			"absent": "does not exist inside"}[a.Decision]
		fmt.Fprintf(&b, "%s%s %s: %s: %s\n", when, a.Access, quoting.Quote(subject), what, quoting.ASCII(a.Reason))
		fmt.Fprintf(&b, "  because  %s\n", a.Where())
		if a.Change != "" {
			fmt.Fprintf(&b, "  allow    %s\n", quoting.ASCII(a.Change))
		}
		if a.Once != "" {
			fmt.Fprintf(&b, "  one run  %s\n", quoting.ASCII(a.Once))
		}
	}
	if e.Target != "" {
		fmt.Fprintf(&b, "  leads to %s\n", quoting.Quote(e.Target))
	}
	if e.Backend != "" {
		fmt.Fprintf(&b, "  held by  %s\n", e.Backend)
	}
	for _, l := range e.Lost {
		fmt.Fprintf(&b, "  loss     %s\n", quoting.ASCII(l))
	}
	if e.Note != "" {
		fmt.Fprintf(&b, "  note     a run from here would be refused: %s\n", quoting.ASCII(e.Note))
	}
	return b.String()
}

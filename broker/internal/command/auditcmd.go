package command

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"sbx.example/sbx/audit"
	"sbx.example/sbx/broker/internal/host"
	"sbx.example/sbx/broker/internal/option"
	"sbx.example/sbx/broker/internal/program"
	"sbx.example/sbx/broker/internal/quoting"
	"sbx.example/sbx/broker/internal/session"
	"sbx.example/sbx/broker/plan"
)

// Audit is sbx audit.
func (t *Term) Audit() Row {
	return Row{
		Command: option.Command{Name: "audit", Args: "[SID] [--follow] [--json]", Full: "[SID] [OPTIONS]",
			Help:  "show what sessions did; audit verify checks the logs",
			Text:  "Shows what sessions asked, were granted and were refused; verify says whether a log was changed, and where.",
			Words: []option.Word{{From: option.Ended}, {}}},
		Verbs: []Row{t.AuditVerify(), t.AuditPrune()},
		Begin: func([]string) ([]option.Option, func([]string) int) {
			var q auditRequest
			return q.options(), func(words []string) int { return t.audit(&q, words) }
		},
	}
}

// auditRequest is what sbx audit is asked for.
type auditRequest struct {
	follow, all, json bool
	kind              string
	filter            audit.Filter
}

func (q *auditRequest) options() []option.Option {
	return []option.Option{
		{Name: "follow", Short: "f", Value: option.Switch(&q.follow), Help: "go on until the session ends"},
		{Name: "all", Short: "a", Value: option.Switch(&q.all), Help: "all records, not only the decisions"},
		{Name: "decision", Arg: "WORD", Value: option.Choice(&q.filter.Decision, "allow", "deny"),
			Help: "only allow, or only deny"},
		{Name: "kind", Arg: "KIND", Value: option.Text(&q.kind), Help: "only records of this kind"},
		{Name: "path", Arg: "PATH", Value: option.Text(&q.filter.PathPrefix), Help: "only what is about PATH or below it"},
		{Name: "json", Value: option.Switch(&q.json), Help: "the records as they are stored, one object a line"},
	}
}

// audit shows the records of sessions.
func (t *Term) audit(q *auditRequest, words []string) int {
	if len(words) > 1 {
		return t.Fail(option.Wrong("usage: sbx audit [SID] [--follow] [--json]", "sbx audit --help says more"))
	}
	f := q.filter
	if q.kind != "" {
		f.Kinds = []string{q.kind}
	}
	logs, err := t.LogsNamed(words)
	if err != nil {
		return t.Fail(err)
	}
	if len(logs) == 0 {
		t.Warn("there are no audit logs yet")
		return 0
	}
	show := func(e audit.Event) {
		switch {
		case !f.Match(&e) || !q.json && !q.all && q.kind == "" && !worthShowing(&e):
		case q.json:
			t.Print(string(audit.AppendLine(nil, &e)))
		default:
			t.Say(auditLine(&e))
		}
	}
	if q.follow {
		each := func(e audit.Event) bool { show(e); return true }
		if err := audit.Follow(context.Background(), logs[len(logs)-1], each); err != nil {
			return t.Fail(err)
		}
		return 0
	}
	bad := 0
	for _, l := range logs {
		for e, err := range audit.Query(l, audit.Filter{}) {
			if err != nil {
				bad++
				t.Warn(err.Error() + " (" + quote(l) + ")")
				continue
			}
			show(e)
		}
	}
	if bad > 0 {
		t.Note("hint: sbx audit verify says what is wrong with a log\n")
		return 1
	}
	return 0
}

// auditDir is where the logs are; sessions are beside it.
func (t *Term) auditDir(facts host.Facts) (dir, sessions string, err error) {
	return session.Logs(host.Lookup(t.Env, "XDG_STATE_HOME"), facts.Home)
}

// LogsNamed finds the logs that the words name, or all.
func (t *Term) LogsNamed(words []string) ([]string, error) {
	dir, sessions, err := t.auditDir(host.Read(t.Env))
	if err != nil {
		return nil, err
	}
	if len(words) == 0 {
		return audit.Logs(dir)
	}
	var out []string
	for _, w := range words {
		p := w
		if !strings.Contains(w, "/") {
			if plan.ValidSession(w) != nil {
				return nil, option.Wrong(quote(w)+" is not a session id",
					"sbx ls --all lists sessions; a file is named with a / in it")
			}
			var ok bool
			if p, ok = logOf(dir, sessions, w); !ok {
				p = filepath.Join(dir, w+".jsonl")
			}
		}
		if _, err := audit.Parts(p); err != nil {
			if errors.Is(err, os.ErrNotExist) {
				return nil, option.Wrong("there is no audit log "+quote(p), "sbx audit without a name shows all")
			}
			return nil, err
		}
		out = append(out, p)
	}
	return out, nil
}

// worthShowing leaves out what a person rarely wants: marks of the log itself.
func worthShowing(e *audit.Event) bool {
	switch e.Kind {
	case audit.KindSeal, audit.KindRotate, audit.KindAsk, audit.KindConfig:
		return false
	}
	return true
}

func auditLine(e *audit.Event) string {
	what := quote(e.Path)
	if e.Host != "" {
		what = quote(e.Host)
		if e.Port != 0 {
			what += ":" + strconv.Itoa(e.Port)
		}
	}
	if what == `""` {
		what = ""
	}
	parts := []string{e.Time.Local().Format("2006-01-02 15:04:05"), e.Session + ":" + strconv.FormatUint(e.Seq, 10),
		e.Kind}
	if e.Decision != "" && e.Decision != e.Kind {
		parts = append(parts, e.Decision)
	}
	for _, s := range []string{e.Op, what} {
		if s != "" {
			parts = append(parts, s)
		}
	}
	if e.Exe != "" {
		parts = append(parts, fmt.Sprintf("by %s[%d]", quote(program.Name(e.Exe)), e.PID))
	}
	if e.Scope != "" || e.Life != "" {
		parts = append(parts, strings.TrimSpace(e.Scope+" "+e.Life))
	}
	text := strings.Join(parts, " ")
	for i, d := range e.Detail {
		text += []string{":", ","}[min(i, 1)] + " " + strings.ReplaceAll(d.K, "_", " ") + " " + quoting.ASCII(d.V)
	}
	if e.Reason != "" {
		text += ": " + quoting.ASCII(e.Reason)
	}
	if e.Rule != "" {
		text += " (" + quoting.ASCII(e.Rule)
		if e.RuleOrigin != "" {
			text += ", " + quoting.ASCII(e.RuleOrigin)
		}
		text += ")"
	}
	return text + "\n"
}

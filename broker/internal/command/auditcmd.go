package command

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"

	"sbx/audit"
	"sbx/broker/internal/host"
	"sbx/broker/internal/option"
	"sbx/broker/internal/program"
	"sbx/broker/internal/quoting"
	"sbx/broker/internal/session"
	"sbx/broker/plan"
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
			t.Print(auditLine(&e))
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
	dir, _, err := t.auditDir(host.Read(t.Env))
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
			if p = filepath.Join(dir, w+".jsonl"); plan.ValidSession(w) != nil {
				return nil, option.Wrong(quote(w)+" is not a session id",
					"sbx ls --all lists sessions; a file is named with a / in it")
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
	if e.Kind == audit.KindTraffic {
		text += ":"
		for i, d := range e.Detail {
			if i > 0 {
				text += ","
			}
			text += " " + strings.ReplaceAll(d.K, "_", " ") + " " + quoting.ASCII(d.V)
		}
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

// verified is one log's row of `sbx audit verify --json`.
type verified struct {
	File     string    `json:"file"`
	SID      string    `json:"sid"`
	Status   string    `json:"status"` // ok, running, unsealed or tampered
	Records  int       `json:"records"`
	LastHash string    `json:"last_hash"`
	Problems []problem `json:"problems"`
}

type problem struct {
	File string `json:"file"`
	Line int    `json:"line"`
	What string `json:"what"`
}

// Auditverify is sbx audit verify.
func (t *Term) AuditVerify() Row {
	return Row{
		Command: option.Command{Name: "audit verify", Args: "[SID|FILE...] [--json]",
			Help: "say whether logs were changed, and where",
			Text: "Follows the chain of every log and names each line that was changed, cut out, moved or added. " +
				"A log without\n" +
				"a seal is one of a session that runs, crashed, or whose end was cut off.",
			Words: []option.Word{{From: option.Ended}}},
		Begin: func([]string) ([]option.Option, func([]string) int) {
			js := false
			return []option.Option{JSON(&js)}, func(words []string) int { return t.auditVerify(words, js) }
		},
	}
}

func (t *Term) auditVerify(names []string, js bool) int {
	logs, err := t.LogsNamed(names)
	if err != nil {
		return t.Fail(err)
	}
	_, sessions, err := t.auditDir(host.Read(t.Env))
	if err != nil {
		return t.Fail(err)
	}
	list, bad := []verified{}, 0
	for _, l := range logs {
		v := verifyLog(l, sessions)
		if v.Status == "tampered" || v.Status == "unsealed" {
			bad++
		}
		list = append(list, v)
	}
	if js {
		t.Print(Encode(struct {
			OK   bool       `json:"ok"`
			Logs []verified `json:"logs"`
		}{bad == 0, list}))
	} else {
		for _, v := range list {
			for _, p := range v.Problems {
				t.Print(fmt.Sprintf("%s:%d: %s\n", quote(p.File), p.Line, quoting.ASCII(p.What)))
			}
			t.Print(fmt.Sprintf("%-8s %s (%d records)\n", v.Status, quote(v.File), v.Records))
		}
	}
	if bad > 0 {
		return 1
	}
	return 0
}

func verifyLog(file, sessions string) verified {
	rep, err := audit.VerifyFile(file)
	v := verified{File: file, SID: rep.Session, Status: "ok", Records: rep.Records, LastHash: rep.LastHash,
		Problems: []problem{}}
	for _, p := range rep.Problems {
		v.Problems = append(v.Problems, problem{p.File, p.Line, p.What})
	}
	running := rep.Session != "" && plan.ValidSession(rep.Session) == nil &&
		session.Alive(filepath.Join(sessions, rep.Session))
	named := strings.TrimSuffix(filepath.Base(file), ".jsonl")
	switch {
	case err != nil && len(rep.Problems) == 0:
		v.Status, v.Problems = "tampered", []problem{{file, 0, err.Error()}}
	case err != nil && !(running && rep.Torn > 0 && len(rep.Problems) == 1): // a line that is being written now
		v.Status = "tampered"
	case rep.Session != named && strings.HasSuffix(file, ".jsonl") && filepath.Dir(file) == path.Join(path.Dir(sessions),
		"audit"):
		v.Status, v.Problems = "tampered", []problem{{file, 1, "the log is session " + rep.Session +
			"'s: it was put in the place of another"}}
	case !rep.Sealed && running:
		v.Status = "running"
	case !rep.Sealed:
		v.Status = "unsealed"
		v.Problems = []problem{{file, rep.Records,
			"the log ends here without a seal: the session crashed, or the rest was cut off"}}
	}
	return v
}

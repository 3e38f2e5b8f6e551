package command

import (
	"fmt"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"sbx.example/sbx/audit"
	"sbx.example/sbx/broker/internal/host"
	"sbx.example/sbx/broker/internal/option"
	"sbx.example/sbx/broker/internal/quoting"
	"sbx.example/sbx/broker/internal/session"
	"sbx.example/sbx/broker/plan"
)

// verified is one log's row of `sbx audit verify --json`.
type verified struct {
	File     string    `json:"file"`
	SID      string    `json:"sid"`
	Status   string    `json:"status"` // ok, running, unsealed, tampered or missing
	Records  int       `json:"records"`
	LastHash string    `json:"last_hash"`
	Problems []problem `json:"problems"`
}

type problem struct {
	File string `json:"file"`
	Line int    `json:"line"`
	What string `json:"what"`
}

// AuditVerify is sbx audit verify.
func (t *Term) AuditVerify() Row {
	return Row{
		Command: option.Command{Name: "audit verify", Args: "[SID|FILE...] [--json]",
			Help: "say whether logs were changed, and where",
			Text: "Follows the chain of every log and names each line that was changed, cut out, moved or added. " +
				"A log without\n" +
				"a seal is one of a session that runs, crashed, or whose end was cut off. Without names, also each log\n" +
				"that a session had and that is gone, unless sbx audit prune removed it.",
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
	dir, sessions, err := t.auditDir(host.Read(t.Env))
	if err != nil {
		return t.Fail(err)
	}
	list, bad := []verified{}, 0
	if len(names) == 0 {
		list = missingLogs(dir, sessions, logs)
		bad = len(list)
	}
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
				where := quote(p.File)
				if p.Line > 0 {
					where += fmt.Sprintf(":%d", p.Line)
				}
				t.Say(where + ": " + quoting.ASCII(p.What) + "\n")
			}
			t.Say(fmt.Sprintf("%-8s %s (%d records)\n", v.Status, quote(v.File), v.Records))
		}
	}
	if bad > 0 {
		return 1
	}
	return 0
}

func verifyLog(file, sessions string) verified {
	running := audit.Running(file) // before it is read: it may be sealed meanwhile, and not the other way round
	rep, err := audit.VerifyFile(file)
	v := verified{File: file, SID: rep.Session, Status: "ok", Records: rep.Records, LastHash: rep.LastHash,
		Problems: []problem{}}
	for _, p := range rep.Problems {
		v.Problems = append(v.Problems, problem{p.File, p.Line, p.What})
	}
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
	case !rep.Sealed && rep.Shared:
	case !rep.Sealed && running:
		v.Status = "running"
	case !rep.Sealed:
		v.Status = "unsealed"
		v.Problems = []problem{{file, rep.Records,
			"the log ends here without a seal: the session crashed, or the rest was cut off"}}
	}
	return v
}

// logOf is the log that a session has by its own folder. A name that was used before has another one than its own.
func logOf(dir, sessions, sid string) (string, bool) {
	b, err := os.ReadFile(filepath.Join(sessions, sid, session.LogFile))
	return filepath.Join(dir, string(b)), err == nil && plan.ValidSession(strings.TrimSuffix(string(b), ".jsonl")) == nil
}

// missingLogs lists the logs that sessions had, by the sessions' own folders, and that nobody pruned: somebody deleted
// them.
func missingLogs(dir, sessions string, logs []string) []verified {
	out := []verified{}
	entries, err := os.ReadDir(sessions)
	if err != nil {
		return out
	}
	gone := map[string]string{} // file → session
	for _, e := range entries {
		if file, ok := logOf(dir, sessions, e.Name()); ok && !slices.Contains(logs, file) {
			gone[file] = e.Name()
		}
	}
	if len(gone) == 0 {
		return out
	}
	for _, l := range logs {
		for e, err := range audit.Query(l, audit.Filter{Kinds: []string{kindPrune}}) {
			if err == nil {
				delete(gone, e.Path)
			}
		}
	}
	for _, file := range slices.Sorted(maps.Keys(gone)) {
		out = append(out, verified{File: file, SID: gone[file], Status: "missing", Problems: []problem{{file, 0,
			"the log of session " + gone[file] + " is gone, and sbx audit prune did not remove it: it was deleted"}}})
	}
	return out
}

package command

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"sbx.example/sbx/audit"
	"sbx.example/sbx/broker/internal/host"
	"sbx.example/sbx/broker/internal/option"
	"sbx.example/sbx/broker/internal/quoting"
	"sbx.example/sbx/broker/internal/session"
)

// kindPrune is the record of a log that was removed: whose it was, and the hash that everything in it led to.
const kindPrune = "prune"

// pruned is one log's row of `sbx audit prune --json`.
type pruned struct {
	File     string `json:"file"`
	SID      string `json:"sid"`
	Status   string `json:"status"` // as audit verify has it
	Records  int    `json:"records"`
	LastHash string `json:"last_hash"`
	Ended    string `json:"ended"`
	Removed  bool   `json:"removed"`
	Why      string `json:"why,omitempty"` // it was not
}

// AuditPrune is sbx auditPrune.
func (t *Term) AuditPrune() Row {
	return Row{
		Command: option.Command{Name: "audit prune", Args: "--older-than AGE [--all] [--dry-run] [--json]",
			Help: "remove old logs",
			Text: "Removes old audit logs, which are kept for ever otherwise. Each that is removed is recorded, with its " +
				"last hash, in a log\n" +
				"of this command's own. Logs of sessions that run stay."},
		Begin: func([]string) ([]option.Option, func([]string) int) {
			var q pruneRequest
			return []option.Option{
				{Name: "older-than", Arg: "AGE", Value: option.Text(&q.age),
					Help: "logs whose last record is older than AGE: 90d, 12w, 36h"},
				{Name: "all", Short: "a", Value: option.Switch(&q.all),
					Help: "also logs without a seal and those that do not verify"},
				{Name: "dry-run", Short: "n", Value: option.Switch(&q.dryRun),
					Help: "show what would be removed and remove nothing"},
				JSON(&q.json),
			}, func(words []string) int { return t.auditPrune(&q, words) }
		},
	}
}

// pruneRequest is what sbx audit prune is asked for.
type pruneRequest struct {
	age               string
	all, dryRun, json bool
}

// auditPrune removes old logs. Nothing else ever does; what was removed is itself on record.
func (t *Term) auditPrune(q *pruneRequest, words []string) int {
	if len(words) > 0 || q.age == "" {
		return t.Fail(option.Wrong("usage: sbx audit prune --older-than AGE [--dry-run]",
			"logs are kept for ever unless an age is given: 90d, 12w, 36h"))
	}
	limit, err := ParseAge(q.age)
	if err != nil {
		return t.Fail(option.Wrong(err.Error(), "an age is a number and d, w or h: 90d, 12w, 36h"))
	}
	facts := host.Read(t.Env)
	dir, sessions, err := t.auditDir(facts)
	if err != nil {
		return t.Fail(err)
	}
	logs, err := audit.Logs(dir)
	if err != nil {
		return t.Fail(err)
	}
	list, err := t.prune(q, logs, dir, sessions, time.Now().Add(-limit))
	if q.json && err != nil {
		return t.Fail(err)
	}
	if q.json {
		t.Print(Encode(struct {
			DryRun bool     `json:"dry_run"`
			Logs   []pruned `json:"logs"`
		}{q.dryRun, list}))
	} else {
		t.printPruned(list, q.dryRun)
	}
	if err != nil {
		return t.Fail(err)
	}
	return 0
}

// prune removes those of the logs that ended before the moment. Each is on record before it goes.
func (t *Term) prune(q *pruneRequest, logs []string, dir, sessions string, before time.Time) (list []pruned,
	err error) {
	var w *audit.Writer
	defer func() {
		if w == nil {
			return
		}
		if cerr := w.Close(); err == nil {
			err = cerr
		}
	}()
	list = []pruned{}
	for _, l := range logs {
		info, err := os.Lstat(l)
		if err != nil || !info.ModTime().Before(before) {
			continue
		}
		v := verifyLog(l, sessions)
		x := pruned{File: l, SID: strings.TrimSuffix(filepath.Base(l), ".jsonl"), Status: v.Status, Records: v.Records,
			LastHash: v.LastHash, Ended: info.ModTime().UTC().Format(time.RFC3339)}
		switch {
		case v.Status == "running":
			x.Why = audit.ErrRunning.Error()
		case v.Status != "ok" && !q.all:
			x.Why = "it is " + v.Status + "; --all removes such as well"
		case q.dryRun:
		default:
			if w == nil {
				if w, err = audit.Create(dir, "prune-"+session.NewID(), audit.Options{Start: audit.Event{UID: os.Getuid(),
					PID: os.Getpid(), Op: kindPrune}}); err != nil {
					return list, err
				}
			}
			if _, err := w.Soon(audit.Event{Kind: kindPrune, UID: os.Getuid(), PID: os.Getpid(), Path: l,
				Detail: []audit.KV{{K: "status", V: v.Status}, {K: "records", V: strconv.Itoa(v.Records)}, {K: "last_hash",
					V: v.LastHash}}}); err != nil {
				return list, err
			}
			if err := audit.Remove(l); err != nil {
				x.Why = err.Error()
			}
			x.Removed = x.Why == ""
		}
		list = append(list, x)
	}
	return list, nil
}

func (t *Term) printPruned(list []pruned, dry bool) {
	n := 0
	for _, x := range list {
		word := "removed"
		switch {
		case x.Why != "":
			t.Print(fmt.Sprintf("kept     %s: %s\n", quote(x.File), x.Why))
			continue
		case dry:
			word = "old"
		}
		n++
		t.Print(fmt.Sprintf("%-8s %s (%d records, %s)\n", word, quote(x.File), x.Records, x.Ended))
	}
	switch {
	case dry:
		t.Warn(fmt.Sprintf("dry run: %s would be removed", quoting.Count(n, "log")))
	case n > 0:
		t.Warn(quoting.Count(n, "log") + " removed; what they were is in the log of this command, see sbx audit --kind " +
			kindPrune)
	default:
		t.Warn("no log was removed")
	}
}

// ParseAge reads a number of days, weeks or hours.
func ParseAge(s string) (time.Duration, error) {
	unit := map[byte]time.Duration{'h': time.Hour, 'd': 24 * time.Hour, 'w': 7 * 24 * time.Hour}
	if s == "" {
		return 0, fmt.Errorf("reading age %s: it is empty", quote(s))
	}
	n, err := strconv.ParseUint(s[:len(s)-1], 10, 16)
	if u, ok := unit[s[len(s)-1]]; ok && err == nil {
		return time.Duration(n) * u, nil
	}
	return 0, fmt.Errorf("reading age %s: want 90d, 12w or 36h", quote(s))
}

package records

import (
	"fmt"
	"slices"
	"time"

	"sbx.example/sbx/broker/internal/command"
	"sbx.example/sbx/broker/internal/option"
	"sbx.example/sbx/broker/internal/planner"
	"sbx.example/sbx/broker/internal/quoting"
	"sbx.example/sbx/broker/internal/session"
)

// Remove is sbx rm.
func (t Records) Remove() command.Row {
	return command.Row{
		Command: option.Command{Name: "rm", Args: "[--force] [--json] SID...", Help: "remove the records of ended sessions",
			Text: "Removes what ended sessions have left: plan, output, status. Their audit logs stay (sbx audit prune).\n" +
				"One that runs, or whose overlays were kept, goes only with --force, which ends it first.",
			Words: []option.Word{{From: option.Ended}}},
		Begin: func([]string) ([]option.Option, func([]string) int) {
			force, js := false, false
			return []option.Option{
				{Name: "force", Short: "f", Value: option.Switch(&force), Help: "end what runs, and throw kept overlays away"},
				command.JSON(&js),
			}, func(sids []string) int { return t.remove(sids, force) }
		},
	}
}

func (t Records) remove(sids []string, force bool) int {
	if len(sids) == 0 {
		return t.Fail(option.Wrong("sbx rm wants a session", "sbx ls --all lists them"))
	}
	return t.Each("sessions", "sid", sids, func(sid string) error {
		l, err := t.named(sid)
		switch {
		case err != nil:
			return err
		case l.Alive && !force:
			return &planner.Refusal{What: "session " + sid + " is running",
				Hint: "sbx kill " + sid + " ends it; --force does both"}
		case l.Kept && !force:
			return &planner.Refusal{What: "what the overlays of session " + sid + " collected is kept",
				Hint: "sbx apply " + sid + " or sbx discard " + sid + "; --force throws it away"}
		case l.Alive:
			if err := t.EndSession(sid); err != nil {
				return err
			}
		}
		return t.removeRecord(sid, l.Dir)
	})
}

// removeRecord removes the folder of a session that has ended.
func (t Records) removeRecord(sid, dir string) error {
	lock, err := t.LockEnded(sid, dir)
	if err != nil {
		return err
	}
	defer lock.Close()
	if err := session.Remove(dir); err != nil {
		return fmt.Errorf("removing the record of session %s: %w", sid, err)
	}
	return nil
}

// Prune is sbx prune.
func (t Records) Prune() command.Row {
	return command.Row{
		Command: option.Command{Name: "prune", Args: "[--caches] [--older-than AGE] [--dry-run] [--json]",
			Help: "remove the records of all ended sessions",
			Text: "Removes the records of all sessions that have ended, but for those whose overlays were kept.\n" +
				"sbx keeps the last 200 by itself; audit logs stay (sbx audit prune). With --caches it removes instead what is\n" +
				"kept of caches for the next run of projects, but for those in which a session runs.", Words: []option.Word{{}}},
		Begin: func([]string) ([]option.Option, func([]string) int) {
			var q pruneRequest
			return []option.Option{
				{Name: "older-than", Arg: "AGE", Value: option.Text(&q.age),
					Help: "only sessions that began longer ago: 90d, 12w, 36h"},
				{Name: "caches", Value: option.Switch(&q.caches),
					Help: "remove what is kept of projects' caches, and no record"},
				{Name: "dry-run", Short: "n", Value: option.Switch(&q.dryRun),
					Help: "show what would be removed and remove nothing"},
				command.JSON(&q.json),
			}, func(words []string) int { return t.pruneSessions(&q, words) }
		},
	}
}

// pruneRequest is what sbx prune is asked for.
type pruneRequest struct {
	age                  string
	caches, dryRun, json bool
}

func (t Records) pruneSessions(q *pruneRequest, words []string) int {
	if len(words) > 0 {
		return t.Fail(command.Unexpected("prune", words[0]))
	}
	limit := time.Duration(0)
	if q.age != "" {
		var err error
		if limit, err = command.ParseAge(q.age); err != nil {
			return t.Fail(option.Wrong(err.Error(), "an age is a number and d, w or h: 90d, 12w, 36h"))
		}
	}
	root, err := t.records()
	if err != nil {
		return t.Fail(err)
	}
	if q.caches {
		return t.pruneCaches(root, q, limit)
	}
	list, _, err := allOf(root)
	if err != nil {
		return t.Fail(err)
	}
	list = slices.DeleteFunc(list, func(l listed) bool {
		return session.Alive(l.Dir) || l.Kept || time.Since(l.Started) < limit
	})
	var names []string
	for _, l := range list {
		if !q.dryRun {
			if err := t.removeRecord(l.SID, l.Dir); err != nil {
				return t.Fail(err)
			}
		}
		names = append(names, l.SID)
	}
	return t.pruned(q, names, nil)
}

// pruned says what went.
func (t Records) pruned(q *pruneRequest, sessions, projects []string) int {
	if q.json {
		t.Print(command.Encode(struct {
			DryRun   bool     `json:"dry_run"`
			Sessions []string `json:"sessions"`
			Projects []string `json:"projects"` // directories
		}{q.dryRun, append([]string{}, sessions...), append([]string{}, projects...)}))
		return 0
	}
	what := "session"
	if q.caches {
		what = "project"
	}
	names := append(sessions, projects...)
	for _, name := range names {
		t.Print(quoting.Quote(name) + "\n")
	}
	word := " removed"
	if q.dryRun {
		word = " would be removed; nothing was"
	}
	t.Warn(quoting.Count(len(names), what) + word)
	return 0
}

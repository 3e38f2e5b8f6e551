package bwrap

import (
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"sbx.example/sbx/audit"
	"sbx.example/sbx/broker/internal/session"
	"sbx.example/sbx/broker/plan"
)

// record is what the log of the day says of one run. All runs of a day share one: agents make dozens for one command.
type record struct {
	dir string // of the logs; "" keeps none
	sid string
	id  string
}

// newRecord is nothing where sbx keeps no records yet and none has to be: what only wants bubblewrap gets no folder in
// its home for it.
func newRecord(logs string, now time.Time, must bool) record {
	if logs == "" || !must && unix.Access(path.Dir(logs), unix.W_OK|unix.X_OK) != nil {
		return record{}
	}
	return record{dir: logs, sid: Name + "-" + now.UTC().Format("20060102"), id: session.NewID()}
}

// add writes events of this run.
func (r record) add(events ...audit.Event) error {
	if r.dir == "" {
		return nil
	}
	w, err := audit.Join(r.dir, r.sid, audit.Options{Start: audit.Event{UID: os.Getuid(), Op: Name}})
	if err != nil {
		return err
	}
	defer w.Leave()
	for _, e := range events {
		e.ID, e.UID = r.id, os.Getuid()
		if _, err := w.Note(e); err != nil {
			return err
		}
	}
	return nil
}

// began writes what is run, and by what words. Values of variables are left out: callers hand over tokens in them.
func (r record) began(p *plan.Plan, cwd string, words []string) error {
	words = slices.Clone(words)
	for i := range words {
		if i >= 2 && words[i-2] == "--setenv" {
			words[i] = "..."
		}
	}
	return r.add(audit.Event{Kind: audit.KindExec, PID: os.Getpid(), Cwd: cwd, Op: Name, Path: string(p.Process.Path),
		Detail: []audit.KV{{K: "words", V: strings.Join(words, " ")}}})
}

// ended writes what was refused, and the status.
func (r record) ended(blocked []audit.Event, status int) error {
	return r.add(append(blocked, audit.Event{Kind: audit.KindExit, PID: os.Getpid(),
		Detail: []audit.KV{{K: "status", V: strconv.Itoa(status)}}})...)
}

//go:build linux

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

	often *audit.Often // the log is joined anew for each record
}

// newRecord is nothing where sbx keeps no records yet and none has to be: what only wants bubblewrap gets no folder in
// its home for it.
func newRecord(logs string, now time.Time, must bool) record {
	if logs == "" || !must && !keepsRecords(logs) {
		return record{}
	}
	return record{dir: logs, sid: Name + "-" + now.UTC().Format("20060102"), id: session.NewID(),
		often: &audit.Often{}}
}

// keepsRecords says whether there is the folder that logs lie in.
func keepsRecords(logs string) bool {
	return logs != "" && unix.Access(path.Dir(logs), unix.W_OK|unix.X_OK) == nil
}

// add writes events of this run.
func (r record) add(events ...audit.Event) error {
	_, err := r.join(func(w *audit.Writer) (_ audit.Event, err error) {
		for i := 0; i < len(events) && err == nil; i++ {
			_, err = w.Note(r.of(events[i]))
		}
		return audit.Event{}, err
	})
	return err
}

func (r record) join(write func(*audit.Writer) (audit.Event, error)) (audit.Event, error) {
	if r.dir == "" {
		return audit.Event{}, nil
	}
	w, err := audit.Join(r.dir, r.sid, audit.Options{Start: audit.Event{UID: os.Getuid(), Op: Name}})
	if err != nil {
		return audit.Event{}, err
	}
	defer w.Leave()
	return write(w)
}

// of makes an event one of this run's.
func (r record) of(e audit.Event) audit.Event {
	e.ID, e.UID = r.id, os.Getuid()
	return e
}

// Append writes what was decided: it is on the disk before it takes effect. With the others record is an
// arbiter.Recorder.
func (r record) Append(e audit.Event) (audit.Event, error) {
	return r.join(func(w *audit.Writer) (audit.Event, error) { return w.Append(r.of(e)) })
}

// Note writes what needs not be there at once.
func (r record) Note(e audit.Event) (audit.Event, error) {
	return r.join(func(w *audit.Writer) (audit.Event, error) { return w.Note(r.of(e)) })
}

// Often is Note, and counts what comes too often.
func (r record) Often(e audit.Event) (audit.Event, error) {
	if r.dir == "" {
		return audit.Event{}, nil
	}
	return r.often.Put(e, r.Note)
}

// Soon is Note: the log is somebody else's meanwhile.
func (r record) Soon(e audit.Event) (audit.Event, error) { return r.Note(e) }

// Err is nil: the log is opened anew for each record.
func (r record) Err() error { return nil }

// Later is Note as well.
func (r record) Later(e audit.Event) (audit.Event, error) { return r.Note(e) }

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
	if r.often != nil {
		r.often.Flush(r.Note)
	}
	return r.add(append(blocked, audit.Event{Kind: audit.KindExit, PID: os.Getpid(),
		Detail: []audit.KV{{K: "status", V: strconv.Itoa(status)}}})...)
}

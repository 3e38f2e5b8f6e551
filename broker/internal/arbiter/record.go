package arbiter

import (
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"sbx.example/sbx/audit"
	"sbx.example/sbx/broker/internal/decide"
	"sbx.example/sbx/broker/internal/policy"
	"sbx.example/sbx/broker/internal/prompt"
)

// recorder words decisions for the record.
type recorder struct{ to Recorder }

// settled records a verdict. It is written before it takes effect, so it outlives the broker. What a human decided for
// this once is put on disk at once, though nobody waits for the disk; what follows from a rule or an answer in the
// record need only be written.
func (l *recorder) settled(ev Event) error {
	kind, decision := outcome(ev.Verdict)
	allow := ev.Verdict.Decision == decide.Allow
	if allow && ev.Repeat && !ev.Verdict.Secret {
		return l.to.Err()
	}
	q, v := ev.Ask, ev.Verdict
	e := audit.Event{Time: ev.Time, Kind: kind, ID: q.ID, UID: os.Getuid(), PID: q.PID, Exe: q.Exe, Cwd: q.Cwd, Op: q.Op,
		Path: q.Path, Host: q.Host, Port: q.Port,
		Decision: decision, Rule: v.Rule, RuleOrigin: v.Origin, Scope: string(v.Scope), Life: string(v.Life),
		Reason: v.Reason, LatencyUS: ev.Latency.Microseconds()}
	if q.Kind == policy.KindHost {
		e.Path = ""
	}
	if !allow {
		e.Scope, e.Errno = "", unix.ErrnoName(syscall.Errno(v.Errno))
	}
	if ev.By != "" {
		e.Detail = append(e.Detail, audit.KV{K: "by", V: ev.By})
	}
	if q.Target != "" && q.Target != q.Path {
		e.Detail = append(e.Detail, audit.KV{K: "target", V: q.Target})
	}
	if len(v.Labels) > 0 {
		e.Detail = append(e.Detail, audit.KV{K: "labels", V: strings.Join(v.Labels, " ")})
	}
	if !v.Until.IsZero() {
		e.Detail = append(e.Detail, audit.KV{K: "until", V: v.Until.UTC().Format(time.RFC3339)})
	}
	// An answer that lasts was recorded when it was given. What a human refused is always there.
	put := l.to.Note
	switch {
	case human(ev.By) && (!allow || !v.Life.Lasts()):
		put = l.to.Soon
	case human(ev.By):
		put = l.to.Later
	case !allow, ev.Repeat:
		put = l.to.Often
	}
	_, err := put(e)
	return err
}

func human(by string) bool { return prompt.IsMeant(by) }

// granted records an answer that lasts, before it holds: one that outlives the session is on disk then.
func (l *recorder) granted(q decide.Question, g decide.Grant, p decide.Answer) error {
	e := audit.Event{Kind: audit.KindGrant, ID: q.ID, UID: os.Getuid(), PID: q.PID, Exe: q.Exe, Cwd: q.Cwd,
		Op: string(g.Access), Path: g.Name,
		Decision: "deny", Scope: string(g.Scope), Life: string(g.Life), Reason: "answered by " + p.By,
		Detail: []audit.KV{{K: "by", V: p.By}}}
	if p.Allow {
		e.Decision = "allow"
	}
	switch {
	case g.Kind == policy.KindHost:
		e.Path, e.Host, e.Port = "", g.Name, g.Port
	case g.Scope == decide.Program || g.Scope == decide.Everything: // about what is asked, not about an object
		e.Path = ""
	}
	if p.Persist != "" {
		e.Detail = append(e.Detail, audit.KV{K: "store", V: p.Persist})
	}
	if !p.Until.IsZero() {
		e.Detail = append(e.Detail, audit.KV{K: "until", V: p.Until.UTC().Format(time.RFC3339)})
	}
	if l.to == nil {
		return os.ErrClosed
	}
	put := l.to.Soon
	if p.Persist != "" {
		put = l.to.Append
	}
	_, err := put(e)
	return err
}

// labelled records that the session carries a label from now on, before anything of the place is read.
func (l *recorder) labelled(label, place string) error {
	if l.to == nil {
		return os.ErrClosed
	}
	_, err := l.to.Soon(audit.Event{Kind: audit.KindLabel, UID: os.Getuid(), Op: "read", Path: place,
		Reason: "who does not accept it is asked about from now on", Detail: []audit.KV{{K: "label", V: label}}})
	return err
}

// revoked records that answers were taken back.
func (l *recorder) revoked(kind policy.Kind, name string, n int) {
	if l.to == nil {
		return
	}
	e := audit.Event{Kind: audit.KindRevoke, UID: os.Getuid(), Path: name, Detail: []audit.KV{{K: "answers",
		V: strconv.Itoa(n)}}}
	if kind == policy.KindHost {
		e.Path, e.Host = "", name
	}
	_, _ = l.to.Append(e)
}

// undone records that one answer was taken back, with what it was about.
func (l *recorder) undone(c decide.Consent) error {
	if l.to == nil {
		return os.ErrClosed
	}
	covers := c.Covers
	if len(covers) == 0 { // what holds once
		for _, n := range c.About().Objects() {
			covers = append(covers, decide.Grant{Name: n.Path, Scope: decide.Once, Life: decide.LifeOnce})
		}
	}
	for _, g := range covers {
		e := audit.Event{Kind: audit.KindRevoke, ID: c.About().ID, UID: os.Getuid(), Exe: c.About().Exe, Op: string(g.Access),
			Path: g.Name, Scope: string(g.Scope), Life: string(g.Life), Reason: "taken back by " + c.Answer.By}
		switch {
		case g.Kind == policy.KindHost:
			e.Path, e.Host, e.Port = "", g.Name, g.Port
		case g.Scope == decide.Program || g.Scope == decide.Everything:
			e.Path = ""
		case g.Name == "" && c.About().Host != "":
			e.Host, e.Port = c.About().Host, c.About().Port
		}
		if _, err := l.to.Append(e); err != nil {
			return err
		}
	}
	return nil
}

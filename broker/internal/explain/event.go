package explain

import (
	"cmp"
	"fmt"
	"net"
	"path/filepath"
	"strconv"
	"strings"

	"sbx.example/sbx/audit"
	"sbx.example/sbx/broker/internal/host"
	"sbx.example/sbx/broker/internal/option"
	"sbx.example/sbx/broker/internal/program"
	"sbx.example/sbx/broker/internal/quoting"
	"sbx.example/sbx/broker/plan"
)

// Event is the part of an audit record that explanations show.
type Event struct {
	ID       string `json:"id"`
	SID      string `json:"sid"`
	Time     string `json:"time"`
	Decision string `json:"decision"`
	Op       string `json:"op,omitempty"`
	Path     string `json:"path,omitempty"`
	Host     string `json:"host,omitempty"`
	Port     int    `json:"port,omitempty"`
	Exe      string `json:"exe,omitempty"`
	PID      int    `json:"pid,omitempty"`
	Rule     string `json:"rule,omitempty"`
	Origin   string `json:"origin,omitempty"`
	Scope    string `json:"scope,omitempty"`
	Reason   string `json:"reason,omitempty"`
}

// Object is what the access was about.
func (e *Event) Object() string {
	switch {
	case e.Host == "":
		return e.Path
	case e.Port != 0:
		return net.JoinHostPort(e.Host, strconv.Itoa(e.Port))
	}
	return e.Host
}

// Text tells the event in a line.
func (e *Event) Text() string {
	s := fmt.Sprintf("event %s of session %s, %s: %s", e.ID, e.SID, e.Time, cmp.Or(e.Decision, "no decision on"))
	if e.Op != "" {
		s += " " + e.Op
	}
	if e.Object() != "" {
		s += " " + quoting.Quote(e.Object())
	}
	if e.Exe != "" {
		s += fmt.Sprintf(" by %s[%d]", quoting.Quote(program.Name(e.Exe)), e.PID)
	}
	if e.Reason != "" {
		s += ": " + quoting.ASCII(e.Reason)
	}
	if e.Rule != "" {
		s += " (" + quoting.ASCII(e.Rule)
		if e.Origin != "" {
			s += ", " + quoting.ASCII(e.Origin)
		}
		s += ")"
	}
	return s
}

// IsEvent says whether a word is the id of an event: of a question (32 digits), of what was settled without one
// (SID-NUMBER, where there is such a log), or SID:NUMBER, which every record has.
func IsEvent(logs, s string) bool {
	if len(s) == 32 && strings.Trim(s, "0123456789abcdef") == "" {
		return true
	}
	i := strings.LastIndexAny(s, ":-")
	if i < 0 || plan.ValidSession(s[:i]) != nil || strings.Contains(s[:i], ".") {
		return false
	}
	if _, err := strconv.ParseUint(s[i+1:], 10, 63); err != nil {
		return false
	}
	return host.Exists(filepath.Join(logs, s[:i]+".jsonl"))
}

// FindEvent looks for the decision on an event in all logs of a directory.
func FindEvent(dir, id string) (*Event, error) {
	logs, err := audit.Logs(dir)
	if err != nil {
		return nil, err
	}
	f := audit.Filter{ID: id}
	var seq uint64
	if sid, n, ok := strings.Cut(id, ":"); ok {
		f = audit.Filter{}
		seq, _ = strconv.ParseUint(n, 10, 63)
		logs = []string{filepath.Join(dir, sid+".jsonl")}
	}
	var found *Event
	for _, l := range logs {
		for e, err := range audit.Query(l, f) {
			if err != nil || seq != 0 && e.Seq != seq {
				continue // what cannot be read is `audit verify`'s to name
			}
			row := Event{ID: id, SID: e.Session, Time: e.Time.Local().Format("2006-01-02 15:04:05"), Decision: e.Decision,
				Op: e.Op, Path: e.Path, Host: e.Host, Port: e.Port,
				Exe: e.Exe, PID: e.PID, Rule: e.Rule, Origin: e.RuleOrigin, Scope: e.Scope, Reason: e.Reason}
			if found == nil || e.Decision != "" {
				if found != nil && row.Path == "" && row.Host == "" {
					row.Path, row.Host, row.Port, row.Op = found.Path, found.Host, found.Port, found.Op
				}
				found = &row
			}
		}
	}
	if found == nil {
		return nil, option.Wrong("no audit log has the event "+quoting.Quote(id), "sbx audit lists the events")
	}
	return found, nil
}

// LastRefusal is the name of what was refused last, in all logs of a directory: the newest that has one is searched.
// What names a path or a host is preferred to a call that was blocked: more can be said of it.
func LastRefusal(dir string) (string, error) {
	logs, err := audit.Logs(dir)
	if err != nil {
		return "", err
	}
	refused := audit.Filter{Kinds: []string{audit.KindDeny, audit.KindBlocked}}
	for i := len(logs) - 1; i >= 0; i-- {
		object, other := "", ""
		for e, err := range audit.Query(logs[i], refused) {
			switch name := e.Session + ":" + strconv.FormatUint(e.Seq, 10); {
			case err != nil:
			case e.Path != "" || e.Host != "":
				object = name
			default:
				other = name
			}
		}
		if last := cmp.Or(object, other); last != "" {
			return last, nil
		}
	}
	return "", option.Wrong("no session on record was refused anything",
		"sbx why PATH or HOST says what would be decided")
}

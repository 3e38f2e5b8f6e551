// Package audit keeps the append-only, hash-chained record of what a session asked, was granted and did.
// It must never rewrite or reorder a record, and never let a caller grant what could not be written. Where the disk is
// full the record is refused, and the next one that is written says how many were; after any other error all are. The
// broker writes through Writer; `sbx audit` and the tests read, follow and verify.
package audit

import (
	"errors"
	"fmt"
	"strings"
	"time"
)

// Kinds of record. Others are allowed as long as they pass checkKind.
const (
	KindStart      = "start"
	KindAsk        = "ask"
	KindAllow      = "allow"
	KindDeny       = "deny"
	KindBlocked    = "blocked"
	KindLoss       = "loss"
	KindGrant      = "grant"
	KindRevoke     = "revoke"
	KindExec       = "exec"
	KindExit       = "exit"
	KindSeal       = "seal"
	KindCredential = "credential" // one was used, or its placeholder strayed
	KindLabel      = "label"      // the session has read what is labelled
	KindDecoy      = "decoy"      // one was read, or its mark was seen
	KindTool       = "tool"       // a call of one was begun, or has ended
	KindFile       = "file"       // an operation on files over the socket was begun, or has ended
	KindTraffic    = "traffic"    // what went to and came from one address
	KindLeft       = "left"       // what somebody may run outside that the session made or changed
	KindRotate     = "rotate"
	KindConfig     = "config"
	KindError      = "error"
)

// Genesis is the Prev of the first record of a session.
const Genesis = "0000000000000000000000000000000000000000000000000000000000000000"

// MaxLine bounds one record, newline included; three PATH_MAX paths at six output bytes each fit.
const MaxLine = 256 << 10

// maxField is the longest value stored whole: PATH_MAX without its NUL, so no path is ever clipped.
const maxField = 4095

// KV is one free-form detail; order is kept, keys are unique.
type KV struct{ K, V string }

// Event is one record. Strings are bytes: anything a Linux path can hold survives a round trip.
// Seq, Session, Prev and Hash are set by the Writer.
type Event struct {
	Seq        uint64
	Time       time.Time
	Session    string
	Kind       string
	ID         string
	UID        int
	PID        int
	Exe        string
	Cwd        string
	Op         string
	Path       string
	Host       string
	Port       int
	Decision   string
	Rule       string
	RuleOrigin string
	Scope      string
	Life       string
	Reason     string
	Errno      string
	LatencyUS  int64
	PlanHash   string
	Detail     []KV
	Prev       string
	Hash       string
}

// field ties a JSON name to its place in an Event; exactly one pointer is set.
type field struct {
	name string
	str  *string
	num  *int
	n64  *int64
}

// fields lists the optional members in the one order a line may have them.
func fields(e *Event) [19]field {
	return [19]field{
		{name: "id", str: &e.ID},
		{name: "uid", num: &e.UID},
		{name: "pid", num: &e.PID},
		{name: "exe", str: &e.Exe},
		{name: "cwd", str: &e.Cwd},
		{name: "op", str: &e.Op},
		{name: "path", str: &e.Path},
		{name: "host", str: &e.Host},
		{name: "port", num: &e.Port},
		{name: "decision", str: &e.Decision},
		{name: "rule", str: &e.Rule},
		{name: "rule_origin", str: &e.RuleOrigin},
		{name: "scope", str: &e.Scope},
		{name: "life", str: &e.Life},
		{name: "reason", str: &e.Reason},
		{name: "errno", str: &e.Errno},
		{name: "latency_us", n64: &e.LatencyUS},
		{name: "plan_hash", str: &e.PlanHash},
		{name: "detail"},
	}
}

func (f field) empty() bool {
	switch {
	case f.str != nil:
		return *f.str == ""
	case f.num != nil:
		return *f.num == 0
	case f.n64 != nil:
		return *f.n64 == 0
	}
	return true
}

func checkKind(k string) error {
	if len(k) == 0 || len(k) > 32 || strings.Trim(k, "abcdefghijklmnopqrstuvwxyz0123456789._-") != "" {
		return fmt.Errorf("checking event kind %q: want 1 to 32 of a-z 0-9 . _ -", clip(k))
	}
	return nil
}

// checkSID repeats the session's own rule because the id becomes a file name here.
func checkSID(sid string) error {
	if len(sid) == 0 || len(sid) > 64 {
		return fmt.Errorf("checking session id %q: want 1 to 64 characters", clip(sid))
	}
	for _, c := range []byte(sid) {
		if !(c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '-') {
			return fmt.Errorf("checking session id %q: want letters, digits and hyphens only", sid)
		}
	}
	return nil
}

// check refuses what no line can carry.
func (e *Event) check() error {
	if err := checkKind(e.Kind); err != nil {
		return err
	}
	if y := e.Time.UTC().Year(); y < 1970 || y > 9999 {
		return fmt.Errorf("checking event time: year %d is out of range", y)
	}
	for i, kv := range e.Detail {
		if kv.K == "" {
			return errors.New("checking event detail: empty key")
		}
		for _, o := range e.Detail[:i] {
			if o.K == kv.K {
				return fmt.Errorf("checking event detail: key %q given twice", kv.K)
			}
		}
	}
	return nil
}

package prompt

import (
	"crypto/rand"
	"encoding/hex"
	"path"
	"strings"
	"time"

	"sbx/shared/plan"
)

// Question is what a sandboxed program wants and does not get without an answer. Strings are bytes as
// the kernel knows them; ID, Time, Merged and a coalesced Path are set by the queue.
type Question struct {
	ID     string // 128 random bits, hex
	SID    string
	Time   time.Time
	PID    int
	Inside int    // its number in the sandbox, where that is known
	Exe    string // see program.Of
	Cwd    string
	Flags  int    // of open(2), if that is what waits
	Op     string // the gate's word: open, stat, write, exec, connect, …
	Path   string
	Target string // where Path leads, if that is elsewhere
	Host   string
	Port   int
	Why    string // the rule that makes it ask
	Dir    bool   // Path is a directory
	Many   bool   // Path stands for the names in it: too many were asked about one by one
	Merged int    // how many accesses wait for the answer
}

// verb is the right that is asked for. Two operations with one verb on one object are one question,
// because one answer settles both.
func (q *Question) verb() string {
	if q.Host != "" {
		return "connect to"
	}
	switch q.Op {
	case "write", "create", "truncate", "rename", "unlink", "link", "mkdir", "chmod":
		return "write"
	case "exec", "execve":
		return "run"
	case "connect":
		return "connect to"
	}
	return "read"
}

// subject is the merge key: NUL occurs in no path and no host. The target is part of it, or a link that
// is turned round while a question waits would ride on the answer for where it led before.
func (q *Question) subject() string {
	kind := "\x00one\x00"
	if q.Many {
		kind = "\x00many\x00" // listing a directory is another question than its names
	}
	return q.verb() + kind + q.Path + "\x00" + q.Target + "\x00" + q.Host + "\x00" + itoa(q.Port)
}

// dir is the directory that an answer with scope dir or tree is about.
func (q *Question) dir() string {
	if q.Dir || q.Many {
		return q.Path
	}
	return path.Dir(q.Path)
}

// Default is the scope that session and forever mean when no other is named.
func (q *Question) Default() Scope {
	switch {
	case q.Host != "":
		return HostScope
	case q.Many:
		return Dir
	}
	return File
}

// Domain is the pattern that scope domain stores, empty if the host has no domain of its own: an
// address, a single label, or a name directly below what may be a public suffix.
func (q *Question) Domain() string {
	h := strings.TrimSuffix(q.Host, ".")
	if strings.Contains(h, ":") || h == "" || h[len(h)-1] >= '0' && h[len(h)-1] <= '9' {
		return ""
	}
	_, parent, ok := strings.Cut(h, ".")
	second, top, ok2 := strings.Cut(parent, ".")
	if !ok || !ok2 || len(top) == 2 && len(second) <= 3 { // co.uk, com.au
		return ""
	}
	return "*." + parent
}

// AppendFields appends the question's JSON members without braces: ASCII only, two different byte
// strings never alike. Members that say nothing are left out.
func (q *Question) AppendFields(b []byte) []byte {
	b = plan.Bytes(q.ID).AppendJSON(append(b, `"id":`...))
	b = plan.Bytes(q.SID).AppendJSON(append(b, `,"sid":`...))
	b = q.Time.UTC().AppendFormat(append(b, `,"ts":"`...), time.RFC3339Nano)
	b = append(append(b, `","pid":`...), itoa(q.PID)...)
	for _, f := range [...]struct{ name, val string }{
		{"exe", q.Exe}, {"cwd", q.Cwd}, {"op", q.Op}, {"path", q.Path}, {"target", q.Target}, {"host", q.Host}, {"why", q.Why},
	} {
		if f.val != "" || f.name == "exe" || f.name == "cwd" || f.name == "op" {
			b = append(append(append(b, `,"`...), f.name...), `":`...)
			b = plan.Bytes(f.val).AppendJSON(b)
		}
	}
	if q.Inside != 0 {
		b = append(append(b, `,"inside_pid":`...), itoa(q.Inside)...)
	}
	if q.Host != "" {
		b = append(append(b, `,"port":`...), itoa(q.Port)...)
	} else {
		b = append(append(b, `,"flags":`...), itoa(q.Flags)...)
	}
	if q.Dir {
		b = append(b, `,"dir":true`...)
	}
	if q.Many {
		b = append(b, `,"many":true`...)
	}
	return append(append(b, `,"merged":`...), itoa(q.Merged)...)
}

// MarshalJSON implements json.Marshaler.
func (q Question) MarshalJSON() ([]byte, error) {
	return append(q.AppendFields([]byte{'{'}), '}'), nil
}

func newID() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails (crypto/rand, Go 1.24)
	return hex.EncodeToString(b[:])
}

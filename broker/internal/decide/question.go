package decide

import (
	"crypto/rand"
	"encoding/hex"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"sbx.example/sbx/broker/internal/policy"
	"sbx.example/sbx/broker/plan"
)

// Question is what sandboxed programs want and do not get without an answer. Strings are bytes as the kernel knows
// them; ID, Time, Merged and Paths are set by the queue. A question never changes what it is about: one that comes to
// be about more has another ID.
type Question struct {
	ID     string // 128 random bits, hex
	SID    string
	Time   time.Time
	PID    int
	Inside int    // its number in the sandbox, where that is known
	Exe    string // see program.Of
	Cwd    string
	Flags  int    // of open(2), if that is what waits
	Op     string // list, read, write, exec, connect, lookup, call, call-on-host, decoy
	Path   string // of merged files their directory
	Target string // where Path leads, if that is elsewhere
	Host   string
	Port   int
	Why    string // the rule that makes it ask
	Dir    bool   // Path is a directory
	Secret bool   // Path is a secret file: it does not exist inside unless the answer shows it
	Whole  bool   // Path is had with everything below it or not at all
	Walk   string // the directory above that the program has listed, and goes through since
	Paths  []Name // several files of one directory wait: these, and no others
	Merged int    // how many accesses wait for the answer
	Last   int    // the last of those that it was shown with, see Answer
	// Everyone: what is allowed once has to be mounted, where every program of the session has it for a moment.
	Everyone bool
	// Labels that stand in the way of it, and why: the places that were read, or who would hear. See Verdict.
	Labels, Others []string
	// The program's own directories, of which Path is one or lies in one: those that scope app reads, and writes.
	AppRead, AppWrite []string
	Acts              string // why what is written there decides what runs outside of the sandbox; "" where it does not
}

// Name is one of several objects that a question is about.
type Name struct {
	Path string
	Dir  bool
}

// Many says whether a question is about several objects of the directory Path.
func (q *Question) Many() bool { return len(q.Paths) > 0 }

// OffersApp says whether an answer can be about all of the program's own directories.
func (q *Question) OffersApp() bool { return len(q.AppRead)+len(q.AppWrite) > 0 }

// Words says whether what a question is about are arguments: each of them matters, not only which they are.
func (q *Question) Words() bool { return q.Op == Call || q.Op == CallOnHost }

// Lasting says whether a yes can be kept as a rule: who is in contact at a read is the session's matter.
func (q *Question) Lasting() bool { return len(q.Others) == 0 || q.Right() == policy.Connect }

// Right is what is asked for. Two operations with one right on one object are one question, because one answer
// settles both.
func (q *Question) Right() policy.Access {
	if q.Host != "" {
		return policy.Connect
	}
	return policy.AccessOf(q.Op)
}

// Verb words the right.
func (q *Question) Verb() string {
	switch {
	case q.Op == Call:
		return "call"
	case q.Op == CallOnHost:
		return "run on the host"
	case q.Op == Decoy:
		return "go on after touching the decoy"
	}
	switch q.Right() {
	case policy.List:
		return "list"
	case policy.Write:
		return "write"
	case policy.Exec:
		return "run"
	case policy.Connect:
		return "connect to"
	}
	if q.Secret {
		return "read the secret"
	}
	return "read"
}

// Container is the directory that scope dir or tree is about.
func (q *Question) Container() string {
	if q.Dir || q.Many() || strings.HasPrefix(q.Path, "@") {
		return q.Path
	}
	return path.Dir(q.about())
}

// about is the path that would be opened up.
func (q *Question) about() string {
	if q.Target != "" {
		return q.Target
	}
	return q.Path
}

// Group is what questions have in common that can become one: the program, the right, the directory and the reason.
// Empty: this one is asked about by itself.
func (q *Question) Group() string {
	if linked := q.Target != "" && q.Target != q.Path; linked || q.Alone() || q.Host != "" || q.Whole || q.Secret ||
		q.Right() == policy.Connect || !strings.HasPrefix(q.Path, "/") {
		return ""
	}
	dir := q.Path
	if !q.Many() {
		dir = path.Dir(q.Path)
	}
	return strings.Join([]string{q.Exe, string(q.Right()), dir, q.Walk, q.Why}, "\x00")
}

// Subject is what equal questions have in common. The target is part of it, or a link that is turned round while a
// question waits would ride on the answer for where it led before; so is the program, or another would.
func (q *Question) Subject() string {
	parts := []string{q.Exe, string(q.Right()), q.Path, q.Target, q.Host, strconv.Itoa(q.Port), q.Walk, q.Why}
	for _, n := range q.Paths {
		parts = append(parts, n.Path)
	}
	return strings.Join(parts, "\x00")
}

// Objects are the objects that wait.
func (q *Question) Objects() []Name {
	if q.Many() {
		return q.Paths
	}
	return []Name{{Path: q.Path, Dir: q.Dir}}
}

// Join makes one question of several of one group, about exactly the objects of all of them.
func Join(list []Question) Question {
	out := list[0]
	out.ID, out.Dir, out.Paths = "", true, nil
	if !list[0].Many() {
		out.Path = path.Dir(out.Path)
	}
	for i := range list {
		for _, n := range list[i].Objects() {
			if !slices.Contains(out.Paths, n) {
				out.Paths = append(out.Paths, n)
			}
		}
	}
	if slices.ContainsFunc(list, func(q Question) bool { return !q.OffersApp() }) {
		out.AppRead, out.AppWrite = nil, nil
	}
	slices.SortFunc(out.Paths, func(a, b Name) int { return strings.Compare(a.Path, b.Path) })
	return out
}

// Asks are the accesses that a question stands for.
func (q *Question) Asks() []Ask {
	a := Ask{ID: q.ID, PID: q.PID, Inside: q.Inside, Exe: q.Exe, Cwd: q.Cwd, Op: q.Op, Kind: policy.KindPath,
		Target: q.Target, Host: q.Host, Port: q.Port, Walk: q.Walk}
	switch {
	case q.Host != "":
		a.Kind = policy.KindHost
	case q.Right() == policy.Connect:
		a.Kind = policy.KindSocket
	case q.Right() == policy.Exec:
		a.Kind = policy.KindExec
	}
	var out []Ask
	for _, n := range q.Objects() {
		a.Path, a.Flags = n.Path, nil
		if n.Dir {
			a.Flags = []string{"dir"}
		}
		if q.Whole {
			a.Flags = append(a.Flags, WholeTree)
		}
		out = append(out, a)
	}
	return out
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
	b = append(append(b, `","pid":`...), strconv.Itoa(q.PID)...)
	for _, f := range [...]struct{ name, val string }{
		{"exe", q.Exe}, {"cwd", q.Cwd}, {"op", q.Op}, {"path", q.Path}, {"target", q.Target},
		{"walk", q.Walk}, {"host", q.Host}, {"why", q.Why}, {"acts", q.Acts},
	} {
		if f.val != "" || f.name == "exe" || f.name == "cwd" || f.name == "op" {
			b = append(append(append(b, `,"`...), f.name...), `":`...)
			b = plan.Bytes(f.val).AppendJSON(b)
		}
	}
	if q.Inside != 0 {
		b = append(append(b, `,"inside_pid":`...), strconv.Itoa(q.Inside)...)
	}
	if q.Host != "" {
		b = append(append(b, `,"port":`...), strconv.Itoa(q.Port)...)
	} else {
		b = append(append(b, `,"flags":`...), strconv.Itoa(q.Flags)...)
	}
	if q.Dir {
		b = append(b, `,"dir":true`...)
	}
	if q.Whole {
		b = append(b, `,"whole":true`...)
	}
	if q.Secret {
		b = append(b, `,"secret":true`...)
	}
	if q.Everyone {
		b = append(b, `,"everyone":true`...)
	}
	if q.Many() {
		b = q.appendPaths(append(b, `,"many":true`...))
	}
	if len(q.AppRead) > 0 {
		b = appendTexts(append(b, `,"app_read":`...), q.AppRead)
	}
	if len(q.AppWrite) > 0 {
		b = appendTexts(append(b, `,"app_write":`...), q.AppWrite)
	}
	if len(q.Others) > 0 {
		b = appendTexts(append(b, `,"labels":`...), q.Labels)
		b = appendTexts(append(b, `,"others":`...), q.Others)
	}
	b = append(append(b, `,"merged":`...), strconv.Itoa(q.Merged)...)
	return append(append(b, `,"last":`...), strconv.Itoa(q.Last)...)
}

func (q *Question) appendPaths(b []byte) []byte {
	names := make([]string, len(q.Paths))
	for i, n := range q.Paths {
		if names[i] = n.Path; n.Dir {
			names[i] += "/"
		}
	}
	return appendTexts(append(b, `,"paths":`...), names)
}

func appendTexts(b []byte, list []string) []byte {
	b = append(b, '[')
	for i, s := range list {
		if i > 0 {
			b = append(b, ',')
		}
		b = plan.Bytes(s).AppendJSON(b)
	}
	return append(b, ']')
}

// MarshalJSON implements json.Marshaler.
func (q Question) MarshalJSON() ([]byte, error) {
	return append(q.AppendFields([]byte{'{'}), '}'), nil
}

// NewID makes the id of a question.
func NewID() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails (crypto/rand, Go 1.24)
	return hex.EncodeToString(b[:])
}

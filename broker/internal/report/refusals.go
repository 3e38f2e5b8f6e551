//go:build linux

package report

import (
	"cmp"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"

	"sbx.example/sbx/audit"
	"sbx.example/sbx/broker/internal/gate/notify"
	"sbx.example/sbx/broker/internal/host"
	"sbx.example/sbx/broker/internal/program"
	"sbx.example/sbx/broker/internal/quoting"
)

// maxBlocked is how many different refusals are remembered; what exceeds it is only counted.
const maxBlocked = 64

// Refusal is something that was refused where nobody decides: a system call, or what a guard keeps from a path.
type Refusal struct {
	Op, Path string // the call, or the access and what it was to
	Exe      string
	PID      int // as the host has it; 0: unknown
	Reason   string
	Advice   string // what to do about it
	Text     string // the same for people
	Silent   bool   // it is on record, and nothing to tell anybody
	failed   bool   // it is no refusal: something did not work
	times    int
}

// Refusals collect what the filter refused, for the summary after the run.
type Refusals struct {
	mu      sync.Mutex
	seen    map[string]*Refusal
	more    int
	Verbose bool // each is printed as it happens
	Print   func(string)
	// Attribute tells whose refusal it was; it may be nil.
	Attribute func(pid uint32, line string)
}

// Note notes a call that the filter refused.
func (b *Refusals) Note(d notify.Denial) {
	r := Refusal{Op: d.Call, PID: int(d.PID), Text: fmt.Sprintf("%s by %s", d.Call, Caller(d.PID))}
	r.Exe, _ = program.Links(r.PID)
	if d.Call == "clone" || d.Call == "unshare" { // the filter refuses nothing else of the two
		r.Advice = ownSandbox
		r.Text += ": " + ownSandbox
	}
	if b.Attribute != nil {
		b.Attribute(d.PID, r.Text)
	}
	b.Add(r)
}

// ownSandbox says what a program wanted namespaces for: browsers do, bwrap and unshare.
const ownSandbox = "a sandbox of its own takes namespaces, which sbx run --nested allows"

// Line notes what the network turned away, or with failed something that did not work there.
func (b *Refusals) Line(text string, failed bool) { b.Add(Refusal{Text: text, failed: failed}) }

// Add notes one refusal.
func (b *Refusals) Add(r Refusal) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if old := b.seen[r.Text]; old != nil {
		old.times++
		old.Silent = old.Silent && r.Silent
		return
	}
	if len(b.seen) >= maxBlocked {
		b.more++
		return
	}
	if b.seen == nil {
		b.seen = map[string]*Refusal{}
	}
	r.times = 1
	if b.seen[r.Text] = &r; b.Verbose && !r.Silent {
		b.Print(r.line())
	}
}

func (r *Refusal) line() string {
	text := "blocked: " + r.Text
	if r.failed {
		text = "failed: " + r.Text
	}
	if r.times > 1 {
		text += fmt.Sprintf(" (%d times)", r.times)
	}
	return text
}

// Caller names a process as it is called inside: program and pid.
func Caller(pid uint32) string {
	_, inside, _ := host.Lineage(pid)
	exe := cmp.Or(program.Of(int(pid)), "?")
	return fmt.Sprintf("%s[%d]", quoting.Quote(program.Name(exe)), cmp.Or(inside, int(pid)))
}

// summary lists what was refused, unless it was printed while it happened.
func (b *Refusals) summary() []string {
	return b.lines(func(r *Refusal) bool { return !b.Verbose || r.times > 1 })
}

// calls are the system calls among them.
func (b *Refusals) calls() []string {
	return b.lines(func(r *Refusal) bool { return r.Path == "" })
}

func (b *Refusals) lines(which func(*Refusal) bool) []string {
	var out []string
	all, more := b.all()
	for i := range all {
		if !all[i].Silent && which(&all[i]) {
			out = append(out, all[i].line())
		}
	}
	if more > 0 {
		out = append(out, fmt.Sprintf("blocked: %d further calls", more))
	}
	return out
}

// all is what was refused, in the order of its text, and how many further ones there were.
func (b *Refusals) all() (list []Refusal, more int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, r := range b.seen {
		list = append(list, *r)
	}
	slices.SortFunc(list, func(x, y Refusal) int { return strings.Compare(x.line(), y.line()) })
	return list, b.more
}

// Events are the records of refused calls, and with all also of what was kept from a path or a host, and of how many
// more there were.
func (b *Refusals) Events(all bool) (out []audit.Event) {
	list, more := b.all()
	for i := range list {
		if r := &list[i]; all || r.Op != "" && r.Path == "" {
			out = append(out, audit.Event{Kind: audit.KindBlocked, UID: os.Getuid(), PID: r.PID, Exe: r.Exe, Op: r.Op,
				Path: r.Path, Decision: "deny", Reason: strings.TrimPrefix(r.line(), "blocked: ")})
		}
	}
	if more > 0 {
		out = append(out, audit.Event{Kind: audit.KindBlocked, UID: os.Getuid(), Decision: "deny",
			Reason: fmt.Sprintf("%d further calls", more)})
	}
	return out
}

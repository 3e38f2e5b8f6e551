//go:build linux

package live

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"sync"

	"sbx.example/sbx/broker/internal/gate/notify"
	"sbx.example/sbx/broker/internal/host"
	"sbx.example/sbx/broker/internal/program"
	"sbx.example/sbx/broker/internal/quoting"
)

// maxBlocked is how many different refusals are remembered; what exceeds it is only counted.
const maxBlocked = 64

// refusal is something that was refused where nobody decides: a system call, or what a guard keeps from a path.
type refusal struct {
	op, path string // the call, or the access and what it was to
	exe      string
	pid      int // as the host has it; 0: unknown
	reason   string
	advice   string // what to do about it
	text     string // the same for people
	failed   bool   // it is no refusal: something did not work
	times    int
}

// refusals collects what the filter refused, for the summary after the run.
type refusals struct {
	mu    sync.Mutex
	seen  map[string]*refusal
	more  int
	verb  bool
	print func(string)
	// attribute tells whose refusal it was; it may be nil.
	attribute func(pid uint32, line string)
}

func (b *refusals) note(d notify.Denial) {
	r := refusal{op: d.Call, pid: int(d.PID), text: fmt.Sprintf("%s by %s", d.Call, caller(d.PID))}
	r.exe, _ = program.Links(r.pid)
	if d.Call == "clone" || d.Call == "unshare" { // the filter refuses nothing else of the two
		r.advice = ownSandbox
		r.text += ": " + ownSandbox
	}
	if b.attribute != nil {
		b.attribute(d.PID, r.text)
	}
	b.add(r)
}

// ownSandbox says what a program wanted namespaces for: browsers do, bwrap and unshare.
const ownSandbox = "a sandbox of its own takes namespaces, which sbx run --nested allows"

// line notes what the network turned away, or with failed something that did not work there.
func (b *refusals) line(text string, failed bool) { b.add(refusal{text: text, failed: failed}) }

// add notes one refusal.
func (b *refusals) add(r refusal) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if old := b.seen[r.text]; old != nil {
		old.times++
		return
	}
	if len(b.seen) >= maxBlocked {
		b.more++
		return
	}
	if b.seen == nil {
		b.seen = map[string]*refusal{}
	}
	r.times = 1
	if b.seen[r.text] = &r; b.verb {
		b.print(r.line())
	}
}

func (r *refusal) line() string {
	text := "blocked: " + r.text
	if r.failed {
		text = "failed: " + r.text
	}
	if r.times > 1 {
		text += fmt.Sprintf(" (%d times)", r.times)
	}
	return text
}

// caller names a process as it is called inside: program and pid.
func caller(pid uint32) string {
	_, inside, _ := host.Lineage(pid)
	exe := cmp.Or(program.Of(int(pid)), "?")
	return fmt.Sprintf("%s[%d]", quoting.Quote(program.Name(exe)), cmp.Or(inside, int(pid)))
}

// summary lists what was refused, unless it was printed while it happened.
func (b *refusals) summary() []string {
	return b.lines(func(r *refusal) bool { return !b.verb || r.times > 1 })
}

// calls are the system calls among them.
func (b *refusals) calls() []string {
	return b.lines(func(r *refusal) bool { return r.path == "" })
}

func (b *refusals) lines(which func(*refusal) bool) []string {
	var out []string
	all, more := b.all()
	for i := range all {
		if which(&all[i]) {
			out = append(out, all[i].line())
		}
	}
	if more > 0 {
		out = append(out, fmt.Sprintf("blocked: %d further calls", more))
	}
	return out
}

// all is what was refused, in the order of its text, and how many further ones there were.
func (b *refusals) all() (list []refusal, more int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, r := range b.seen {
		list = append(list, *r)
	}
	slices.SortFunc(list, func(x, y refusal) int { return strings.Compare(x.line(), y.line()) })
	return list, b.more
}

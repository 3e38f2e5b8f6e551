//go:build linux

package report

import (
	"cmp"
	"errors"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"

	"sbx.example/sbx/broker/internal/arbiter"
	"sbx.example/sbx/broker/internal/decide"
	"sbx.example/sbx/broker/internal/egress"
	"sbx.example/sbx/broker/internal/gate"
	"sbx.example/sbx/broker/internal/gate/notify"
	"sbx.example/sbx/broker/internal/learn"
	"sbx.example/sbx/broker/internal/learner"
	"sbx.example/sbx/broker/internal/policy"
	"sbx.example/sbx/broker/internal/policy/pathname"
	"sbx.example/sbx/broker/internal/policy/peer"
	"sbx.example/sbx/broker/internal/program"
	"sbx.example/sbx/broker/internal/quoting"
)

// OutsideOnly stands before the command that does outside of the sandbox what was refused inside.
const OutsideOnly = "outside of the sandbox: "

// AllowNetwork is what gives a session a network.
const AllowNetwork = "sbx run --allow-network"

// ErrKept is the reason why nothing is made in place of a hidden file.
var ErrKept = errors.New("the host has a file of this name, which is hidden and stays as it is")

// maxReported is how many different accesses a report has; further ones are only counted.
const maxReported = 64

// Access is one access that was refused, or that a person was asked about and will be again.
type Access struct {
	Op     string `json:"op"` // list, read, write, exec or connect
	Path   string `json:"path,omitempty"`
	Host   string `json:"host,omitempty"`
	Port   int    `json:"port,omitempty"`
	Exe    string `json:"exe,omitempty"`
	PID    int    `json:"pid,omitempty"`
	Reason string `json:"reason"`
	Rule   string `json:"rule,omitempty"`
	Origin string `json:"origin,omitempty"`
	Answer string `json:"answer,omitempty"` // who answered: tty, socket, hook, timeout …
	Times  int    `json:"times"`
	Allow  string `json:"allow,omitempty"`  // the one command that allows it next time, if there is one
	Advice string `json:"advice,omitempty"` // what there is to do where there is none
	denied bool
	shown  bool // when it happened
}

// Accesses collect what a session refused and asked. The zero value is ready.
type Accesses struct {
	mu    sync.Mutex
	Home  string
	index map[string]int
	// Filters are sockets with a filter of the broker's: below one there are requests, for which there is no rule.
	Filters []string
	list    []Access
	more    int
	Live    func(line string) // told of a refusal as it happens; may be nil
	// Alone is told of what was refused because nobody was there to be asked, for the program's end; may be nil.
	Alone func(pid uint32, line string)
}

// Observe is called for every settled access of a session.
func (p *Accesses) Observe(ev arbiter.Event) {
	v, q := ev.Verdict, ev.Ask
	allowed := v.Decision == decide.Allow
	switch {
	case v.Silent, allowed && (ev.By == "" || v.Life == decide.Forever):
		return // by a rule, or by an answer that is kept
	}
	x := Access{Op: string(policy.AccessOf(q.Op)), Path: q.Path, Exe: q.Exe, PID: q.PID, Reason: v.Reason, Rule: v.Rule,
		Origin: v.Origin, Answer: ev.By, Times: 1, denied: !allowed}
	if q.Kind == policy.KindHost {
		x.Path, x.Host, x.Port, x.Op = "", q.Host, q.Port, "connect"
	}
	if p.Alone != nil && x.denied && v.Reason == arbiter.NobodyThere {
		x.Allow, x.Advice = p.command(&x, q, v)
		p.Alone(uint32(x.PID), strings.TrimPrefix(x.line(), "blocked: "))
	}
	key := fmt.Sprintf("%t %s %s\x00%s:%d %s", allowed, x.Op, x.Path, x.Host, x.Port, v.Outside)
	p.mu.Lock()
	defer p.mu.Unlock()
	if i, ok := p.index[key]; ok {
		p.list[i].Times++
		return
	}
	if len(p.list) >= maxReported {
		p.more++
		return
	}
	if p.index == nil {
		p.index = map[string]int{}
	}
	x.Allow, x.Advice = p.command(&x, q, v)
	if x.shown = x.denied && p.Live != nil; x.shown {
		p.Live(x.line())
	}
	p.index[key] = len(p.list)
	p.list = append(p.list, x)
}

// object is the path or host that the access was about.
func (x *Access) object(q decide.Ask) string {
	switch {
	case x.Host == "":
		return q.Path
	case x.Port == 0:
		return x.Host
	}
	return x.Host + ":" + strconv.Itoa(x.Port)
}

// command is what would allow the access next time, or where nothing does, what to do instead.
func (p *Accesses) command(x *Access, q decide.Ask, v decide.Verdict) (allow, advice string) {
	what := x.object(q)
	named, isHost := quoting.Shell(what), x.Host != "" && !peer.HasForm(what)
	if isHost { // its name does not say so
		named += " --kind host"
	}
	r, ok := v.Rule, v.Rule != "" && v.Origin != ""
	switch {
	case q.Op == decide.Decoy:
		return "", "it is a decoy: sbx audit --kind decoy says when it was touched"
	case strings.HasPrefix(v.Reason, arbiter.Unrecorded): // nor would it be with a rule
		return "", v.Reason
	case v.Secret: // no rule of that kind opens one
		return "", "sbx why " + quoting.Shell(what)
	case q.Kind == policy.KindSocket && slices.Contains(p.Filters, path.Dir(what)):
		return "", v.Reason
	case v.Reason == gate.ErrSocket.Error(): // nor does a rule
		return "", "sbx run --socket " + quoting.Shell(what)
	case v.Reason == egress.NoNetwork:
		return "", v.Reason + "; " + AllowNetwork
	case v.Reason == ErrKept.Error():
		return "", v.Reason + ": sbx why " + quoting.Shell(x.Path)
	case v.Acts != "":
		return "", "it acts outside of the sandbox: " + v.Acts + ": sbx why --access write " + quoting.Shell(what)
	case v.Outside != "":
		return "", OutsideOnly + v.Outside
	case ok && v.Decision == decide.Deny:
		return "", "sbx why " + named + " (" + quoting.ASCII(r) + ", " + quoting.ASCII(v.Origin) + ")"
	case v.Decision == decide.Deny && q.Kind != policy.KindHost && (v.Errno == int(syscall.ENOENT) ||
		v.Life == decide.Forever || v.Reason == gate.NeverGranted):
		return "", "sbx why " + quoting.Shell(what)
	}
	if v.Reason == notify.NeedsTree {
		return p.commandForTree(path.Dir(what), v)
	}
	pattern := what
	if x.Host == "" {
		pattern = policy.Vars{Home: p.Home}.Short(pathname.Escape(what))
	}
	dir, whole := learner.ComesBack(what, p.Home, x.PID)
	switch {
	case x.Host == "" && !whole && learn.Wide(dir, p.Home):
		return "", "its name is another each time: sbx why " + quoting.Shell(dir)
	case x.Host == "" && !whole:
		pattern = policy.Vars{Home: p.Home}.Short(pathname.Escape(dir)) + "/**"
	case slices.Contains(q.Flags, decide.WholeTree):
		pattern += "/**"
	}
	cmd := "sbx policy add allow " + quoting.Shell(pattern)
	switch {
	case q.Kind == policy.KindSocket:
		cmd += " --kind socket"
	case isHost:
		cmd += " --kind host"
	case x.Op == "write" || x.Op == "exec" || x.Op == "list":
		cmd += " --access " + x.Op
	}
	return cmd, ""
}

// commandForTree is command for a write that can only be had with the whole directory.
func (p *Accesses) commandForTree(dir string, v decide.Verdict) (allow, advice string) {
	if learn.Wide(dir, p.Home) {
		return "", v.Reason
	}
	short := policy.Vars{Home: p.Home}.Short(pathname.Escape(dir))
	return "sbx policy add allow " + quoting.Shell(short+"/**") + " --access write", ""
}

// lines is the summary after a run: what was blocked, then what was asked, each with the command for next time.
func (p *Accesses) lines() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	var out []string
	for _, denied := range []bool{true, false} {
		var list []Access
		for _, x := range p.list {
			if x.denied == denied && (!x.shown || x.Times > 1) {
				list = append(list, x)
			}
		}
		out = append(out, grouped(list)...)
	}
	if p.more > 0 {
		out = append(out, fmt.Sprintf("blocked or asked: %d further accesses; "+
			"sbx audit lists them, of refusals up to 100 a second", p.more))
	}
	return out
}

func (x *Access) word() string {
	if x.denied {
		return "blocked"
	}
	return "asked"
}

// what is the access and what it was to.
func (x *Access) what() string {
	what := quoting.Quote(x.Path)
	if strings.HasPrefix(x.Reason, gate.HiddenReason) || x.Reason == ErrKept.Error() {
		what += " (secret)"
	}
	if strings.HasPrefix(x.Reason, gate.ErrGuarded.Error()) {
		what += " (guarded)"
	}
	if x.Host != "" {
		if what = quoting.Quote(x.Host); x.Port != 0 {
			what += ":" + strconv.Itoa(x.Port)
		}
	}
	return x.Op + " " + what
}

func (x *Access) line() string {
	line := x.word() + ": " + x.what()
	if x.PID != 0 {
		line += fmt.Sprintf(" by %s[%d]", quoting.Quote(program.Name(x.Exe)), x.PID)
	}
	if x.Times > 1 {
		line += fmt.Sprintf(" (%d times)", x.Times)
	}
	return line + ": " + cmp.Or(x.Allow, x.Advice)
}

// Report is what came of a session: the one line that `sbx run --json` writes to standard error at the end.
type Report struct {
	SID      string   `json:"sid"`
	Status   int      `json:"status"`
	TimedOut bool     `json:"timed_out"`
	Blocked  []Access `json:"blocked"`
	Asked    []Access `json:"asked"`
	Calls    []string `json:"calls"` // refused system calls
	Left     []string `json:"left"`  // what somebody may run outside: made repositories, changed build files
	More     int      `json:"more"`  // accesses beyond those that are listed

	Lines []string `json:"-"` // the same for people
}

// Refused says whether anything was refused.
func (r *Report) Refused() bool { return len(r.Blocked)+len(r.Calls) > 0 }

// Ended is a session that has ended.
type Ended struct {
	SID      string
	Status   int // the exit status
	TimedOut bool
	Accesses *Accesses
	Refused  *Refusals
	Left     []string // what somebody may run outside, or what is not where it was written
	Labels   []string // that the session carries
}

// Summarize says after a run what was refused and asked.
func Summarize(s Ended) *Report {
	p, calls := s.Accesses, s.Refused.summary()
	out := &Report{SID: s.SID, Status: s.Status, TimedOut: s.TimedOut, Blocked: []Access{}, Asked: []Access{},
		Calls: append([]string{}, s.Refused.calls()...), Left: append([]string{}, s.Left...)}
	kept, _ := s.Refused.all()
	for _, r := range kept {
		if r.Path != "" && !r.Silent {
			out.Blocked = append(out.Blocked, Access{Op: r.Op, Path: r.Path, Exe: r.Exe, PID: r.PID, Reason: r.Reason,
				Times: r.times, Advice: r.Advice})
		}
	}
	p.mu.Lock()
	for _, x := range p.list {
		if x.denied {
			out.Blocked = append(out.Blocked, x)
		} else {
			out.Asked = append(out.Asked, x)
		}
	}
	out.More = p.more
	p.mu.Unlock()
	out.Lines = slices.Concat(p.lines(), calls, s.Left)
	for _, label := range s.Labels {
		out.Lines = append(out.Lines, "labels: the session carries "+label)
	}
	return out
}

//go:build linux

package gate

import (
	"errors"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"sbx.example/sbx/broker/internal/agent"
	"sbx.example/sbx/broker/internal/child"
	"sbx.example/sbx/broker/internal/decide"
	"sbx.example/sbx/broker/internal/gate/grants"
	"sbx.example/sbx/broker/internal/guard"
	"sbx.example/sbx/broker/internal/host"
	"sbx.example/sbx/broker/internal/policy"
	"sbx.example/sbx/broker/plan"
)

// Grounds are what an engine with an agent decides on besides the answer: what of the host may be mounted, and what a
// changed rule takes back.
type Grounds struct {
	s    *Session
	plan *plan.Plan
	// mounts of the plan whose rule has gone, or of which was said that a new one does not act; followRules'
	withdrawn map[string]bool

	ready chan struct{}
	agent *agent.Agent // set before ready is closed
	over  chan struct{}
	once  sync.Once

	mu      sync.Mutex
	early   []func()                // reports from before the arbiter was there
	guarded map[string]*guardedTree // trees in which guarded names were found
	judges  map[string]*guard.Judge // see judgeOf
}

// maxWaiting bounds the reports that wait for the arbiter.
const maxWaiting = 64

func newGrounds(s *Session) *Grounds {
	return &Grounds{s: s, withdrawn: map[string]bool{}, guarded: map[string]*guardedTree{},
		judges: map[string]*guard.Judge{},
		ready:  make(chan struct{}), over: make(chan struct{})}
}

// foreign knows what is asked about and mounted as a whole.
func (g *Grounds) foreign() *host.Foreign { return g.s.In.Facts.Foreign }

// attachAgent takes over what the agent needs, and has changed rules reviewed from now on.
func (g *Grounds) attachAgent(c *child.Child, review func()) {
	user, inside := c.Fds[plan.FdUserNS], c.Fds[plan.FdMountNS]
	delete(c.Fds, plan.FdUserNS)
	delete(c.Fds, plan.FdMountNS)
	g.agent = agent.New(user, inside)
	g.open()
	go g.followRules(review)
}

// open says that there is an agent, and an arbiter.
func (g *Grounds) open() {
	g.mu.Lock()
	early := g.early
	g.early = nil
	close(g.ready)
	g.mu.Unlock()
	for _, f := range early {
		f()
	}
}

// report runs f, which needs the arbiter, as soon as there is one: a program may begin before this process has heard
// that it did.
func (g *Grounds) report(f func()) {
	g.mu.Lock()
	now := g.Able()
	if !now && len(g.early) < maxWaiting {
		g.early = append(g.early, f)
	}
	g.mu.Unlock()
	if now {
		f()
	}
}

// Able says whether there is an agent: process 1 hands its namespaces over before it runs anything that could be asked
// about.
func (g *Grounds) Able() bool {
	select {
	case <-g.ready:
		return true
	default:
		return false
	}
}

// close runs stop, which settles what waits, and ends the agent.
func (g *Grounds) close(stop func()) {
	g.once.Do(func() {
		close(g.over)
		stop()
		if g.Able() {
			g.agent.Close()
		}
	})
}

// graft is what the agent is to mount for a grant.
func (g *Grounds) graft(p string, st *unix.Stat_t, write bool) agent.Graft {
	m := agent.Graft{Source: p, Target: p, Access: plan.ReadOnly, Dev: st.Dev, Ino: st.Ino, NoExec: g.s.In.Only != nil}
	if write {
		m.Access, m.NoSymFollow = plan.ReadWrite, g.s.In.NoSymFollow && g.s.In.Facts.Since(5, 14)
	}
	return m
}

// reviewPlan has take remove the plan's mounts that rules no longer give.
func (g *Grounds) reviewPlan(take func(target string) error) {
	for i := range g.plan.Mounts {
		m := &g.plan.Mounts[i]
		// below a judged tree lies one that can be written
		if m.Kind != plan.Bind || !g.byRule(m.Why) || g.plan.Judged(m.Target) {
			g.tooLate(m)
			continue
		}
		p := m.Target
		if g.withdrawn[p] || g.given(p, modeOf(m.Access)) {
			continue
		}
		g.withdrawn[p] = true
		g.warn(take(p))
	}
}

// warn says what could not be taken back.
func (g *Grounds) warn(err error) {
	if err != nil && !errors.Is(err, os.ErrClosed) { // closed: the session has ended meanwhile
		g.s.Warn("taking back what rules no longer allow: " + err.Error())
	}
}

// mayWrite says whether an answer could allow writing at all: Landlock's rules were made before, and a mount on the
// very place of one would hide it. Where it has no rules about files, as with containers, it refuses none.
func (g *Grounds) mayWrite(p string, mounted bool) bool {
	l := g.plan.Landlock
	if l == nil || l.HandledFS == 0 {
		return true
	}
	return slices.ContainsFunc(l.Rules, func(l plan.LandlockRule) bool {
		return host.Within(p, string(l.Path)) && !(mounted && p == string(l.Path))
	})
}

// writable says whether a directory that was asked for may be written as well, without a question.
func (g *Grounds) writable(p string) bool {
	return g.mayWrite(p, true) && g.stands(p, grants.RW)
}

// tooLate says, once, that a new rule does not act on what is mounted for another reason than a rule: taking that away
// would end the work.
func (g *Grounds) tooLate(m *plan.Mount) {
	p := g.plan.OnHost(m.Target)
	if m.Kind != plan.Bind && m.Kind != plan.Fuse || p == "/" || g.withdrawn[p] {
		return
	}
	for _, a := range [...]policy.Access{policy.Read, policy.Write} {
		if a == policy.Write && m.Access != plan.ReadWrite {
			break
		}
		if g.s.Arbiter.Restricts(p, a) && !g.s.Rules.Settings.Layers.Policy.Restricts(p, a, time.Now()) {
			g.withdrawn[p] = true
			g.s.Warn("a rule has been added that refuses something in " + plan.Bytes(p).Quote() +
				", which this session was started with: it acts there from the next run on")
			return
		}
	}
}

// hides says whether a path is a secret's or one that was hidden from the start.
func (g *Grounds) hides(p string) bool {
	no, _ := g.s.View.Denied(p)
	return no
}

// byRule says whether the reason of a mount is a line of a policy file.
func (g *Grounds) byRule(why string) bool {
	for _, f := range g.s.Rules.Paths() {
		if strings.HasPrefix(why, f+":") {
			return true
		}
	}
	return false
}

// lists says whether the names of a directory would be granted now without a question.
func (g *Grounds) lists(p string) bool {
	q := decide.Ask{Op: "list", Kind: policy.KindPath, Path: p, Flags: []string{"dir"}}
	return g.s.Arbiter.Current(q).Decision == decide.Allow
}

// given says whether rules still give what the plan mounts: as they were when it was made, by its own name, or by one
// that leads to it where no rule is about its own.
func (g *Grounds) given(p string, m grants.Mode) bool {
	v := g.verdict(p, p, m)
	return v.Decision == decide.Allow || g.s.Rules.Planned() ||
		v.Rule == "" && slices.ContainsFunc(g.s.Rules.Names(p), func(name string) bool {
			return g.verdict(name, p, m).Decision == decide.Allow
		})
}

// stands says whether something that was granted would be granted now without a question.
func (g *Grounds) stands(p string, m grants.Mode) bool {
	return g.verdict(p, p, m).Decision == decide.Allow
}

// verdict is what would be said now of what is at p, asked for by a name. Of a directory a yes is about all of it.
func (g *Grounds) verdict(name, p string, m grants.Mode) decide.Verdict {
	q := decide.Ask{Op: "read", Kind: policy.KindPath, Path: name}
	var st unix.Stat_t
	if err := lstat(p, &st); err != nil {
		return decide.Verdict{Decision: decide.Deny}
	}
	dir := st.Mode&unix.S_IFMT == unix.S_IFDIR
	switch {
	case dir:
		q.Flags = []string{"dir"}
	case st.Mode&unix.S_IFMT == unix.S_IFSOCK:
		q.Flags = []string{"socket"}
	}
	if m == grants.RW {
		q.Op = "write"
	}
	v := g.s.Arbiter.Current(q)
	if dir && !v.Whole && v.Decision == decide.Allow {
		v.Decision = decide.AskHuman
	}
	return v
}

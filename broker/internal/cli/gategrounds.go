package cli

import (
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"sbx/broker/internal/decide"
	"sbx/broker/internal/gate/gatefs"
	"sbx/broker/internal/host"
	"sbx/broker/internal/policy"
	"sbx/shared/plan"
)

// grounds are what an engine with an agent decides on besides the answer: what of the host may be mounted, and what a changed rule takes back.
type grounds struct {
	a         *asking
	plan      *plan.Plan
	foreign   *foreignMounts
	withdrawn map[string]bool // mounts of the plan whose rule has gone, or of which was said that a new one does not act; followRules'
}

func newGrounds(a *asking) grounds {
	return grounds{a: a, foreign: &foreignMounts{}, withdrawn: map[string]bool{}}
}

// mayWrite says whether an answer could allow writing at all: Landlock's rules were made before, and a mount on the very place of one
// would hide it.
func (g *grounds) mayWrite(p string, mounted bool) bool {
	if g.plan.Landlock == nil {
		return true
	}
	return slices.ContainsFunc(g.plan.Landlock.Rules, func(l plan.LandlockRule) bool {
		return host.Within(p, string(l.Path)) && !(mounted && p == string(l.Path))
	})
}

// writable says whether a directory that was asked for may be written as well, without a question.
func (g *grounds) writable(p string) bool {
	return g.mayWrite(p, true) && g.stands(p, gatefs.RW)
}

// tooLate says, once, that a new rule does not act on what is mounted for another reason than a rule: taking that away would end the work.
func (g *grounds) tooLate(m *plan.Mount) {
	p := string(m.Target)
	if m.Kind != plan.Bind && m.Kind != plan.Fuse || p == "/" || g.withdrawn[p] {
		return
	}
	for _, a := range [...]policy.Access{policy.Read, policy.Write} {
		if a == policy.Write && m.Access != plan.ReadWrite {
			break
		}
		if g.a.arb.Restricts(p, a) && !g.a.cfg.layers.Policy.Restricts(p, a, time.Now()) {
			g.withdrawn[p] = true
			g.a.t.warn("a rule has been added that refuses something in " + plan.Bytes(p).Quote() + ", which this session was started with: it acts there from the next run on")
			return
		}
	}
}

// hides says whether a path is a secret's or one that was hidden from the start.
func (g *grounds) hides(p string) bool {
	no, _ := g.a.view.Denied(p)
	return no
}

// byRule says whether the reason of a mount is a line of a policy file.
func (g *grounds) byRule(why string) bool {
	for _, f := range g.a.rules.files() {
		if strings.HasPrefix(why, f+":") {
			return true
		}
	}
	return false
}

// stands says whether something that was granted would be granted now without a question.
func (g *grounds) stands(p string, m gatefs.Mode) bool {
	q := decide.Ask{Op: "read", Kind: policy.KindPath, Path: p}
	var st unix.Stat_t
	if err := lstat(p, &st); err != nil {
		return false
	}
	dir := st.Mode&unix.S_IFMT == unix.S_IFDIR
	switch {
	case dir:
		q.Flags = []string{"dir"}
	case st.Mode&unix.S_IFMT == unix.S_IFSOCK:
		q.Flags = []string{"socket"}
	}
	if m == gatefs.RW {
		q.Op = "write"
	}
	v := g.a.arb.Stands(q)
	return v.Decision == decide.Allow && (!dir || v.Whole)
}

package cli

import (
	"errors"
	"os"
	"path"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"sbx/broker/internal/decide"
	"sbx/broker/internal/gate/gatefs"
	"sbx/broker/internal/policy"
	"sbx/shared/plan"
)

const (
	// watchAfter keeps what only long sessions need out of the start.
	watchAfter = time.Second
	// watchCalm joins the events of one change.
	watchCalm = 20 * time.Millisecond
)

// followRules takes back what a changed policy file no longer gives, while the session runs: what is mounted raises no question in
// which the change would be noticed.
func (g *fileGate) followRules() {
	state := g.a.rules.look()
	select {
	case <-g.over:
		return
	case <-time.After(watchAfter):
	}
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
	if err != nil {
		g.a.t.warn("watching the policy files: " + err.Error())
		return
	}
	f := os.NewFile(uintptr(fd), "inotify")
	go func() {
		<-g.over
		f.Close()
	}()
	dirs := map[string]bool{}
	for _, p := range g.a.rules.files() {
		dirs[path.Dir(p)] = true
	}
	watch := func() {
		for d := range dirs {
			// A folder that does not exist yet holds no rule that could go; one that is made later is found with the next change.
			if _, err := unix.InotifyAddWatch(fd, d, unix.IN_CLOSE_WRITE|unix.IN_MOVED_TO|unix.IN_MOVED_FROM|unix.IN_DELETE|unix.IN_ONLYDIR); err == nil {
				delete(dirs, d)
			}
		}
	}
	var b [4096]byte
	for {
		watch()
		if now := g.a.rules.look(); now != state {
			state = now
			g.review()
		}
		if _, err := f.Read(b[:]); err != nil {
			return
		}
		time.Sleep(watchCalm)
	}
}

// review takes back what would not be given any more.
func (g *fileGate) review() {
	warn := func(err error) {
		if err != nil && !errors.Is(err, errSessionOver) {
			g.a.t.warn("taking back what rules no longer allow: " + err.Error())
		}
	}
	warn(g.server.Review(func(p string, m gatefs.Mode, mounted bool) bool {
		// A tree that may be written by now is to be mounted anew.
		return g.stands(p, m) && !(m == gatefs.RO && mounted && g.writable(gatefs.Request{Path: p, Dir: true}))
	}))
	for i := range g.plan.Mounts {
		m := &g.plan.Mounts[i]
		if m.Kind != plan.Bind || !g.byRule(m.Why) {
			g.tooLate(m)
			continue
		}
		if g.withdrawn[string(m.Target)] || g.stands(string(m.Target), modeOf(m.Access)) {
			continue
		}
		g.withdrawn[string(m.Target)] = true
		warn(g.server.Withdraw(string(m.Target), g.hides))
	}
}

// tooLate says, once, that a new rule does not act on what is mounted for another reason than a rule: taking that away would end the work.
func (g *fileGate) tooLate(m *plan.Mount) {
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
func (g *fileGate) hides(p string) bool {
	no, _ := g.a.view.Denied(p)
	return no
}

// byRule says whether the reason of a mount is a line of a policy file.
func (g *fileGate) byRule(why string) bool {
	for _, f := range g.a.rules.files() {
		if strings.HasPrefix(why, f+":") {
			return true
		}
	}
	return false
}

// stands says whether something that was granted would be granted now without a question.
func (g *fileGate) stands(p string, m gatefs.Mode) bool {
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

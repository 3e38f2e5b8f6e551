//go:build linux

package gate

import (
	"os"
	"path"
	"sync"
	"sync/atomic"
	"syscall"

	"golang.org/x/sys/unix"

	"sbx.example/sbx/broker/internal/agent"
	"sbx.example/sbx/broker/internal/child"
	"sbx.example/sbx/broker/internal/decide"
	"sbx.example/sbx/broker/internal/gate/grants"
	"sbx.example/sbx/broker/internal/gate/notify"
	"sbx.example/sbx/broker/internal/host"
	"sbx.example/sbx/broker/internal/policy"
	"sbx.example/sbx/broker/plan"
)

// Mounts mounts for the notification engine what was granted. Without an agent, as where a helper made the sandbox, it
// does nothing.
type Mounts struct {
	*Grounds

	placed atomic.Bool
	doing  sync.Mutex      // held while the agent works, which can take long in a file system of somebody else's
	under  map[string]bool // files that are mounted below what was mounted over their directory later. Guarded by doing.
	mu     sync.Mutex      // guards the tables, which every call that finds nothing looks at
	grants map[string]mountGrant
	next   map[string]verdict         // what is about to be mounted
	gone   map[string]bool            // mounts of the plan that were taken away
	listed map[string]map[string]bool // directories whose names were shown, and those
	// reviews is how often it was looked at what is to be taken back
	reviews int
}

// mountGrant is something that an answer has mounted.
type mountGrant struct {
	mode     grants.Mode
	dir      bool
	dev, ino uint64
	layers   int // mounts that lie on each other there
}

// maxLayers is how often a grant that changes is mounted on itself: there is no moment without it then. After that
// there is one.
const maxLayers = 8

func NewMountGate(s *Session) *Mounts {
	return &Mounts{Grounds: newGrounds(s), grants: map[string]mountGrant{}, next: map[string]verdict{},
		gone: map[string]bool{}, under: map[string]bool{}, listed: map[string]map[string]bool{}}
}

// Standing takes over what the agent needs, if there is to be one.
func (g *Mounts) Standing(c *child.Child, p *plan.Plan) {
	if c.Fds[plan.FdMountNS] == nil {
		return
	}
	g.plan = p
	g.attachAgent(c, g.review)
}

// Join gives the engine what it mounts with.
func (g *Mounts) Join(n *Notify) {
	if g.Able() {
		n.Opener, n.Grafter, n.Answer, n.Live, n.Originals = g, g, g.answer, g, g.originals
		n.Foreign = g.foreign()
		if g.s.Rules.Settings.Sandbox.Stat == "type-only" {
			n.TypeOnly = func(q decide.Ask) bool { return g.s.Arbiter.Current(q).Decision != decide.Allow }
		}
	}
}

// answer asks, and says what is to be mounted for a yes.
func (g *Mounts) answer(q decide.Ask, a notify.Ask, ask func() decide.Verdict) notify.Answer {
	write := policy.AccessOf(q.Op) == policy.Write
	switch {
	case q.Kind == policy.KindSocket:
	case write && !g.mayWrite(a.Path, a.Dir):
		return notify.Answer{Errno: unix.EROFS}
	case q.Kind == policy.KindExec && g.s.In.Only != nil:
		return notify.Answer{}
	}
	reviews := g.reviewed(0)
	v := ask()
	if v.Decision != decide.Allow {
		return notify.Answer{Errno: syscall.Errno(v.Errno)}
	}
	if g.foreign().Over(a.Path) == "" && g.s.Names.Other(a.Path) {
		return notify.Answer{Errno: unix.ENOENT}
	}
	if write && q.Kind != policy.KindSocket {
		if e := g.refuseGuarded(q, a.Dir && v.Whole); e != 0 {
			return notify.Answer{Errno: e}
		}
	}
	g.releaseFor(q, a)
	out := notify.Answer{Allow: true, Write: write}
	if q.Kind == policy.KindSocket {
		return out
	}
	if q.Kind == policy.KindExec && g.s.Arbiter.RuledOut(decide.Ask{Op: "read", Kind: policy.KindPath, Path: a.Path}) {
		g.s.Arbiter.Refused(q, decide.Verdict{Errno: int(unix.EACCES),
			Reason: "what is executed is mounted and could be read, which a rule refuses"})
		return notify.Answer{}
	}
	mode := grants.RO
	if write {
		mode = grants.RW
	}
	switch {
	case a.Dir && v.Whole && g.Whole(a.Path):
		out.Mount = a.Path
	case !a.Dir && v.Scope == decide.Tree && v.Path != a.Path && host.Within(a.Path, v.Path) && g.Whole(v.Path) &&
		g.stands(v.Path, mode):
		out.Mount = v.Path
	}
	if out.Mount != "" && v.Life.Lasts() && g.writable(out.Mount) {
		out.Write = true // what is mounted read-only asks nobody who writes
	}
	at := out.Mount
	switch {
	case at != "":
	case q.Kind == policy.KindExec || q.Op == "watch":
		at = a.Path
	default: // it is handed over
		return out
	}
	g.expect(at, v, reviews)
	return out
}

// End ends the agent.
func (g *Mounts) End() { g.close(func() {}) }

// Graft mounts a file or tree of the host's at its own place.
func (g *Mounts) Graft(p string, write bool) error {
	var st unix.Stat_t
	if err := lstat(p, &st); err != nil {
		return err
	}
	m := mountGrant{dir: st.Mode&unix.S_IFMT == unix.S_IFDIR, dev: st.Dev, ino: st.Ino, mode: grants.RO}
	spot := agent.SpotDir
	if write {
		m.mode = grants.RW
	}
	switch {
	case m.dir:
	case st.Mode&unix.S_IFMT != unix.S_IFREG:
		return errReplaced
	case g.s.Names.Token(p):
		return errToken
	default:
		spot = agent.SpotFile
	}
	if write && m.dir {
		if e := g.refuseGuarded(decide.Ask{Op: "write", Kind: policy.KindPath, Path: p}, true); e != 0 {
			return e
		}
		g.opened(p)
	}
	g.doing.Lock()
	defer g.doing.Unlock()
	have, ok := g.grant(p)
	g.mu.Lock()
	by := g.next[p]
	delete(g.next, p)
	g.mu.Unlock()
	defer g.expire(p, by.life)
	if ok && have.dev == m.dev && have.ino == m.ino && (have.mode == grants.RW || !write) {
		return nil
	}
	g.placed.Store(true)
	if ok && (have.layers >= maxLayers || have.dir != m.dir) {
		if err := g.ungraft(func(q string) bool { return host.Within(q, p) }); err != nil {
			return err
		}
		_ = g.agent.Unplace(p)
		have.layers = 0
	}
	m.layers = have.layers + 1
	if err := g.agent.Place(p, spot, ""); err != nil {
		return err
	}
	if err := g.shown(p, &st, write, g.agent.Graft(g.graft(p, &st, write))); err != nil {
		return err
	}
	return g.enter(p, m, by)
}

func (g *Mounts) grant(p string) (mountGrant, bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	m, ok := g.grants[p]
	return m, ok
}

// GraftFor mounts a file that is granted already where a process finds it that went to its directory before that was
// mounted.
func (g *Mounts) GraftFor(pid int, rel, p string) error {
	var st unix.Stat_t
	if err := lstat(p, &st); err != nil {
		return err
	}
	if g.s.Names.Token(p) || g.s.Names.Hides(p) {
		return errToken
	}
	g.doing.Lock()
	defer g.doing.Unlock()
	if err := g.agent.Place(p, agent.SpotFile, ""); err != nil {
		return err
	}
	if g.under[p] {
		return nil
	}
	graft := g.graft(p, &st, false)
	graft.PID, graft.At = pid, rel
	if err := g.agent.Graft(graft); err != nil {
		return err
	}
	g.under[p] = true
	return nil
}

// Place makes a directory or link that leads to what may be mounted.
func (g *Mounts) Place(p, link string) error {
	g.placed.Store(true)
	if link != "" {
		return g.agent.Place(p, agent.SpotLink, link)
	}
	return g.agent.Place(p, agent.SpotDir, "")
}

// List makes places for the names in a directory, and takes those away that stood for what is gone.
func (g *Mounts) List(dir string, names []os.DirEntry) error {
	if err := g.Place(dir, ""); err != nil {
		return err
	}
	now := map[string]bool{}
	for _, e := range names {
		p := path.Join(dir, e.Name())
		var st unix.Stat_t
		if no, _ := g.Denied(p); no || lstat(p, &st) != nil || g.s.View.Secret(host.Inode{Dev: st.Dev, Ino: st.Ino}) {
			continue
		}
		spot, link := agent.SpotFile, ""
		switch st.Mode & unix.S_IFMT {
		case unix.S_IFDIR:
			spot = agent.SpotDir
		case unix.S_IFLNK:
			spot = agent.SpotLink
			var err error
			if link, err = os.Readlink(p); err != nil {
				continue
			}
		case unix.S_IFREG:
		default: // a place would be taken for it
			continue
		}
		now[p] = true
		if err := g.agent.Place(p, spot, link); err != nil {
			return err
		}
	}
	g.mu.Lock()
	was := g.listed[dir]
	g.listed[dir] = now
	g.mu.Unlock()
	for p := range was {
		if !now[p] {
			g.Unplace(p)
		}
	}
	return nil
}

// Unplace takes away what stood for something that is gone.
func (g *Mounts) Unplace(p string) {
	if g.placed.Load() {
		_ = g.agent.Unplace(p)
	}
}

// Placed says whether anything was placed, mounted or taken away.
func (g *Mounts) Placed() bool { return g.placed.Load() }

// Granted says whether a path lies in a tree that an answer has mounted.
func (g *Mounts) Granted(p string) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	for len(g.grants) > 0 {
		if m, ok := g.grants[p]; ok && m.dir {
			return true
		}
		if p == "/" {
			break
		}
		p = path.Dir(p)
	}
	return false
}

// Whole says whether a directory could be mounted.
func (g *Mounts) Whole(p string) bool {
	return !g.Own(p) && g.s.View.Whole(p) && !g.keeps(p)
}

// Own says whether the plan has a directory at a path.
func (g *Mounts) Own(p string) bool {
	at, below := g.s.View.Planned(p)
	return at && (below || !g.withdrawnAt(p))
}

// Detach copies the mount of a single file.
func (g *Mounts) Detach(p string, object *os.File, write bool) (*os.File, error) {
	var st unix.Stat_t
	if err := unix.Fstat(int(object.Fd()), &st); err != nil {
		return nil, err
	}
	return g.agent.Detach(g.graft(p, &st, write))
}

// withdrawnAt says whether a path lies in a mount of the plan that was taken away.
func (g *Mounts) withdrawnAt(p string) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	for q := range g.gone {
		if host.Within(p, q) {
			return true
		}
	}
	return false
}

// Visible, Gated, Denied and Whole are the plan's, less what was taken away.
func (g *Mounts) Visible(p string) bool { return g.s.View.Visible(p) && !g.withdrawnAt(p) }

// Gated says whether a path may be asked for.
func (g *Mounts) Gated(p string) bool {
	if g.s.View.Gated(p) {
		return true
	}
	no, _ := g.s.View.Denied(p)
	return !no && g.withdrawnAt(p)
}

// Denied says whether a path is never granted.
func (g *Mounts) Denied(p string) (bool, syscall.Errno) { return g.s.View.Denied(p) }

// Served lists the directories that this process serves.
func (g *Mounts) Served() []string { return g.s.View.Served() }

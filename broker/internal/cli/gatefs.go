package cli

import (
	"context"
	"fmt"
	"log"
	"os"
	"path"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"sbx/broker/internal/agent"
	"sbx/broker/internal/child"
	"sbx/broker/internal/decide"
	"sbx/broker/internal/gate"
	"sbx/broker/internal/gate/gatefs"
	"sbx/broker/internal/host"
	"sbx/broker/internal/policy"
	"sbx/broker/internal/request"
	"sbx/shared/plan"
)

// onceFor is how long stays mounted what an answer for this once is of no use for without: a socket, what is
// executed by the notification engine, and
// a file system that a program serves. The question says so. Nothing else that was allowed once is mounted.
const onceFor = 2 * time.Second

// fileGate is the engine that serves the root and asks about what is not granted on it.
type fileGate struct {
	*grounds
	server *gatefs.Server

	child int // process 1, whose requests while it builds never wait
}

var errSessionOver = fmt.Errorf("the session has ended: %w", os.ErrClosed)

// The engines of a dynamic session; a static one has none.
const (
	engineFiles  = "gatefs"
	engineNotify = "notify"
)

// engine chooses who notices an access that is not granted.
func engine(r *run, cfg request.Settings, facts host.Facts) string {
	switch {
	case r.mode != "dynamic":
		return ""
	case cfg.Sandbox.Gate != engineNotify && facts.Fuse:
		return engineFiles
	}
	return engineNotify
}

// fuse returns who serves the FUSE file systems of a plan: the gate its root, guard the projects.
func (a *asking) fuse(p *plan.Plan, guard func(*child.Child, *plan.Mount, int) error) func(*child.Child, *plan.Mount, int) error {
	if a == nil || a.files == nil {
		return guard
	}
	return func(c *child.Child, m *plan.Mount, fd int) error {
		if m.Target == "/" {
			return a.files.serve(p, fd, c)
		}
		return guard(c, m, fd)
	}
}

// grounds are those of the engine with an agent; nil if there is none.
func (a *asking) grounds() *grounds {
	switch {
	case a == nil:
	case a.files != nil:
		return a.files.grounds
	case a.mounts != nil && a.mounts.able():
		return a.mounts.grounds
	}
	return nil
}

// standing is called when the sandbox stands.
func (a *asking) standing(c *child.Child, p *plan.Plan) {
	switch {
	case a == nil:
	case a.files != nil:
		a.files.take(c, a.files.review)
	case c.Fds[plan.FdMountNS] != nil:
		a.mounts.standing(c, p)
	}
}

func newFileGate(a *asking) *fileGate {
	return &fileGate{grounds: newGrounds(a)}
}

// serve starts the server on the device of the root.
func (g *fileGate) serve(p *plan.Plan, fd int, c *child.Child) error {
	g.child, g.plan = c.PID, p
	stat := gatefs.StatAsk
	if g.a.cfg.Sandbox.Stat == "type-only" {
		stat = gatefs.StatType
	}
	s, err := gatefs.New(fd, g.tree(p), gatefs.Options{Stat: stat,
		Owner: gatefs.Owner{UID: p.Identity.InsideUID, GID: p.Identity.InsideGID},
		Agent: g, Ask: g.request, ServeFiles: g.a.in.Only == nil, Foreign: g.foreign.over, Refused: g.refused, Secret: g.a.names.Hides, Secrets: g.a.names.Judge, Unasked: g.a.rules.env.NoPrompt && g.a.rules.env.Unasked == decide.Deny, Walk: true,
		Log: log.New(&gateLog{g: g}, "", 0)})
	if err != nil {
		return err
	}
	g.server = s
	c.ServeRoot(child.Root{Fd: fd, Answer: func() bool { return s.NextOf(c.PID) }, Serve: func() { go s.Serve() }})
	return nil
}

// stop settles what waits.
func (g *fileGate) stop() {
	if g.server != nil {
		g.server.Stop()
	}
}

// requests is how many of the kernel's requests were taken.
func (g *fileGate) requests() int64 {
	if !g.able() { // it is still being built
		return 0
	}
	return int64(g.server.Requests())
}

// revoke takes back what was mounted at a path, above or below it: new accesses ask again.
func (g *fileGate) revoke(p string) error {
	if g.server == nil {
		return errSessionOver
	}
	_, err := g.server.RevokeAll(p)
	return err
}

// tree is the description of the root. A directory that is there for what rules of the policy grant in it, as answers leave
// them, still asks who lists it: an answer about a file was none about the names beside it.
func (g *fileGate) tree(p *plan.Plan) gatefs.Tree {
	ruled := map[string]bool{}
	for _, x := range g.a.in.Grants {
		ruled[x.Why] = x.Ruled
	}
	t := gateTree(p.Gate)
	for i := range t.Dirs {
		d := &t.Dirs[i]
		if d.Unlisted != gatefs.AskFirst || host.Within(g.a.in.Facts.Home, d.Path) ||
			g.a.in.Dir != "" && host.Within(g.a.in.Dir, d.Path) {
			continue
		}
		for k := range p.Mounts {
			if m := &p.Mounts[k]; host.Within(string(m.Target), d.Path) {
				if d.Asks = ruled[m.Why]; !d.Asks {
					break
				}
			}
		}
	}
	return t
}

// gateTree words the description of the root for the server.
func gateTree(g *plan.Gate) gatefs.Tree {
	t := gatefs.Tree{Dirs: make([]gatefs.Dir, 0, len(g.Dirs))}
	for _, d := range g.Dirs {
		out := gatefs.Dir{Path: string(d.Path), Place: d.Place}
		if d.Ask {
			out.Unlisted = gatefs.AskFirst
		}
		for _, n := range d.Names {
			c := gatefs.Child{Name: string(n.Name)}
			switch n.Kind {
			case plan.Symlink:
				c.Kind, c.Target = gatefs.Symlink, string(n.Target)
			case plan.File:
				c.Kind, c.Mode = gatefs.Bound, modeOf(n.Access)
			default:
				c.Kind = gatefs.Hidden
			}
			out.Children = append(out.Children, c)
		}
		t.Dirs = append(t.Dirs, out)
	}
	return t
}

func modeOf(a plan.Access) gatefs.Mode {
	if a == plan.ReadWrite {
		return gatefs.RW
	}
	return gatefs.RO
}

// permitted says whether what is asked for could be shown at all: it is neither a secret under another name nor a directory
// that holds one, which cannot be mounted whole.
func (g *fileGate) permitted(r gatefs.Request) bool {
	if no, _ := g.a.view.Denied(r.Path); no || r.Dir && r.Op != "list" && !g.a.view.Whole(r.Path) {
		return false
	}
	var st unix.Stat_t
	return r.Dir || unix.Lstat(r.Path, &st) != nil || !g.a.view.Secret(gate.File{Dev: st.Dev, Ino: st.Ino})
}

// asking words the server's question.
func (g *fileGate) asking(r gatefs.Request) decide.Ask {
	q := decide.Ask{PID: int(r.PID), Op: r.Op, Kind: policy.KindPath, Path: r.Path, Walk: r.Walk}
	switch r.Op {
	case "lookup", "open", "access", "xattr", "statfs":
		q.Op = "read"
	case "exec":
		q.Kind = policy.KindExec
	}
	if r.PID != 0 {
		q.Exe, q.Cwd = procLinks(q.PID)
	}
	if r.Dir {
		q.Flags = append(q.Flags, "dir")
	}
	if r.Socket {
		q.Op, q.Flags = "connect", append(q.Flags, "socket")
	}
	if r.Dir && g.foreign.over(r.Path) != "" {
		q.Flags = append(q.Flags, decide.WholeTree)
	}
	if g.mounts(r) {
		q.Flags = append(q.Flags, decide.Mounted)
	}
	return q
}

// request puts the server's question and words the answer for it.
func (g *fileGate) request(ctx context.Context, r gatefs.Request) gatefs.Answer {
	if _, err := g.mounter(); err != nil { // also: until there is an arbiter
		return gatefs.Answer{}
	}
	q := g.asking(r)
	if policy.AccessOf(q.Op) == policy.Write && !g.mayWrite(r.Path, r.Dir) {
		return gatefs.Answer{Errno: unix.EROFS}
	}
	if !g.permitted(r) {
		return gatefs.Answer{Errno: unix.ENOENT}
	}
	v := g.a.arb.Ask(ctx, q)
	if v.Decision != decide.Allow {
		return gatefs.Answer{Errno: syscall.Errno(v.Errno)}
	}
	if policy.AccessOf(q.Op) == policy.Write {
		if e := g.refuseGuarded(q, false); e != 0 {
			return gatefs.Answer{Errno: e}
		}
	}
	return g.granting(r, policy.AccessOf(q.Op) == policy.Write, v)
}

// granting is what a yes mounts or shows: what the verdict says, and no more.
func (g *fileGate) granting(r gatefs.Request, writes bool, v decide.Verdict) gatefs.Answer {
	a := gatefs.Answer{Allow: true, Path: r.Path}
	if v.Scope == decide.Tree && v.Path != "" && !g.keeps(v.Path) {
		a.Path = v.Path
	}
	a.Names = r.Dir && a.Path == r.Path && (!v.Whole || g.keeps(r.Path) || !g.a.view.Whole(r.Path))
	if writes || r.Socket {
		a.Mode = gatefs.RW
	}
	if r.Dir && !a.Names && a.Path == r.Path && v.Life.Lasts() && g.writable(r.Path) {
		a.Mode = gatefs.RW // what is mounted read-only asks nobody who writes
	}
	switch foreign := g.foreign.over(r.Path) != ""; {
	case a.Names && foreign:
		g.record(r, errForeign)
		return gatefs.Answer{}
	case a.Names && writes: // the directory itself is changed
		a.Once = true
	case !v.Life.Lasts() && !g.mounts(r):
		a.Once = true
	case !v.Life.Lasts():
		g.expire(a.Path, onceFor)
	case v.Life == decide.Until:
		g.expire(a.Path, time.Until(v.Until))
	}
	return a
}

// mounts says whether an object is of use only where it is mounted.
func (g *fileGate) mounts(r gatefs.Request) bool {
	return r.Socket || r.Dir && g.foreign.over(r.Path) != ""
}

// expire takes a grant back after a while.
func (g *fileGate) expire(p string, after time.Duration) {
	lapse(after, func() { _ = g.server.RevokeBelow(p) })
}

// lapse calls f after a while in which this program could run: who waited must have had the time to go on, also where the machine stood still.
func lapse(after time.Duration, f func()) {
	const step = 200 * time.Millisecond
	if after > onceFor {
		time.AfterFunc(after, f)
		return
	}
	go func() {
		for ; after > 0; after -= step {
			time.Sleep(min(after, step))
		}
		f()
	}()
}

// Is says whether a request comes from the agent or from process 1.
func (g *fileGate) Is(pid int) bool {
	if pid == g.child {
		return true
	}
	return g.able() && pid == g.agent.PID()
}

// mounter waits until there is an agent.
func (g *grounds) mounter() (*agent.Agent, error) {
	select {
	case <-g.ready:
		return g.agent, nil
	case <-g.over:
		return nil, errSessionOver
	}
}

// Graft is called by the server with a path that was granted.
func (g *fileGate) Graft(p string, m gatefs.Mode, typ uint32) error {
	a, err := g.mounter()
	if err != nil {
		return err
	}
	var st unix.Stat_t
	if err := lstat(p, &st); err != nil {
		return err
	}
	if typ != 0 && st.Mode&unix.S_IFMT != typ {
		return errReplaced
	}
	noexec := g.a.in.Only != nil // which is a matter of mounts
	if st.Mode&unix.S_IFMT == unix.S_IFREG && !noexec {
		return gatefs.ErrServe
	}
	if st.Mode&unix.S_IFMT == unix.S_IFDIR && g.holdsSocket(p) {
		if m == gatefs.RW || noexec {
			g.record(gatefs.Request{Op: "write", Path: p, Dir: true}, errHoldsSocket)
			return errHoldsSocket
		}
		return gatefs.ErrServe
	}
	if m == gatefs.RW && st.Mode&unix.S_IFMT == unix.S_IFDIR {
		if e := g.refuseGuarded(decide.Ask{Op: "write", Kind: policy.KindPath, Path: p}, true); e != 0 {
			return e
		}
		g.opened(p, &st)
	}
	return a.Graft(g.graft(p, &st, m == gatefs.RW))
}

// Revoke is called by the server when a grant has been taken back.
func (g *fileGate) Revoke(p string) error {
	a, err := g.mounter()
	if err != nil {
		return err
	}
	return a.Ungraft(p)
}

// Populate is called by the server before the first request where process 1 has not listed a directory.
func (g *fileGate) Populate(dir string) error {
	a, err := g.mounter()
	if err != nil {
		return err
	}
	return a.Populate(path.Clean(dir))
}

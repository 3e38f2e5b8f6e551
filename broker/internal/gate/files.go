//go:build linux

package gate

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"path"
	"slices"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"sbx.example/sbx/broker/internal/agent"
	"sbx.example/sbx/broker/internal/child"
	"sbx.example/sbx/broker/internal/decide"
	"sbx.example/sbx/broker/internal/gate/gatefs"
	"sbx.example/sbx/broker/internal/gate/grants"
	"sbx.example/sbx/broker/internal/gate/served"
	"sbx.example/sbx/broker/internal/host"
	"sbx.example/sbx/broker/internal/planner"
	"sbx.example/sbx/broker/internal/policy"
	"sbx.example/sbx/broker/internal/program"
	"sbx.example/sbx/broker/internal/request"
	"sbx.example/sbx/broker/plan"
)

// onceFor is how long stays mounted what an answer for this once is of no use for without: a socket, what is executed
// by the notification engine, and a file system that a program serves. The question says so. Nothing else that was
// allowed once is mounted.
const onceFor = 2 * time.Second

// Files is the engine that serves the root and asks about what is not granted on it.
type Files struct {
	*Grounds
	server *gatefs.Server
	leads  func() []string // secret directories of which one file may be shown

	child int // process 1, whose requests while it builds never wait
}

var errSessionOver = fmt.Errorf("the session has ended: %w", os.ErrClosed)

func NewFileGate(s *Session) *Files {
	return &Files{Grounds: newGrounds(s), leads: sync.OnceValue(func() (out []string) {
		for _, p := range s.In.Reveals {
			for dir := path.Dir(p); dir != "/"; dir = path.Dir(dir) {
				if policy.HiddenBy(s.Rules.Concealed(), policy.KindPath, dir) != nil {
					out = append(out, dir)
				}
			}
		}
		return out
	})}
}

// Serve starts the server on the device of the root.
func (g *Files) Serve(p *plan.Plan, fd int, c *child.Child) error {
	g.child, g.plan = c.PID, p
	stat := gatefs.StatAsk
	if g.s.Rules.Settings.Sandbox.Stat == "type-only" {
		stat = gatefs.StatType
	}
	s, err := gatefs.New(fd, g.tree(p), gatefs.Options{Stat: stat,
		Owner: gatefs.Owner{UID: p.Identity.InsideUID, GID: p.Identity.InsideGID},
		Agent: g, Access: g, ServeFiles: g.s.In.Only == nil, Refused: g.refused,
		HistoryDir: g.s.In.SessionDir + "/overlay/typed", Secrets: g.s.Names.Judge, Notifying: g.s.Notifying,
		Unasked: g.s.Rules.Env.NoPrompt && g.s.Rules.Env.Unasked == decide.Deny, Walk: true,
		Log: log.New(&gateLog{g: g}, "", 0)})
	if err != nil {
		return err
	}
	g.server = s
	c.ServeRoot(child.Root{Fd: fd, Answer: func() bool { return s.NextOf(c.PID) }, Serve: func() { go s.Serve() }})
	return nil
}

// Standing takes over what the agent needs.
func (g *Files) Standing(c *child.Child, _ *plan.Plan) { g.attachAgent(c, g.review) }

// End settles what waits, and ends the agent.
func (g *Files) End() {
	g.close(func() {
		if g.server != nil {
			g.server.Stop()
		}
	})
}

// Requests is how many of the kernel's requests were taken.
func (g *Files) Requests() int64 {
	if !g.Able() { // it is still being built
		return 0
	}
	return int64(g.server.Requests())
}

// Forget takes back what was mounted at a path, above or below it: new accesses ask again.
func (g *Files) Forget(p string) error {
	if g.server == nil {
		return errSessionOver
	}
	_, err := g.server.Grants.RevokeAll(p)
	return err
}

// tree is the description of the root. A directory that is there for what rules of the policy grant in it, as answers
// leave them, still asks who lists it: an answer about a file was none about the names beside it.
func (g *Files) tree(p *plan.Plan) served.Tree {
	ruled := map[string]bool{}
	for _, x := range g.s.In.Grants {
		ruled[x.Why] = x.Ruled
	}
	t := TreeOf(p.Gate)
	for i := range t.Dirs {
		d := &t.Dirs[i]
		for k := range d.Children {
			if g.s.In.HasDecoy(path.Join(d.Path, d.Children[k].Name)) {
				d.Children[k].Kind = served.Covered // whatever the host has there
			}
		}
		if d.Unlisted != served.AskFirst || host.Within(g.s.In.Facts.Home, d.Path) ||
			g.s.In.Dir != "" && host.Within(g.s.In.Dir, d.Path) {
			continue
		}
		for k := range p.Mounts {
			if m := &p.Mounts[k]; host.Within(m.Target, d.Path) {
				if d.Asks = ruled[m.Why]; !d.Asks {
					break
				}
			}
		}
	}
	return t
}

// TreeOf words the description of the root for the server.
func TreeOf(g *plan.Gate) served.Tree {
	t := served.Tree{Dirs: make([]served.Dir, 0, len(g.Dirs))}
	for _, d := range g.Dirs {
		out := served.Dir{Path: string(d.Path), Place: d.Place}
		if d.Ask {
			out.Unlisted = served.AskFirst
		}
		for _, n := range d.Names {
			c := served.Child{Name: string(n.Name)}
			switch n.Kind {
			case plan.Symlink:
				c.Kind, c.Target = served.Symlink, string(n.Target)
			case plan.File:
				c.Kind, c.Mode = served.Bound, modeOf(n.Access)
				if !host.Exists(path.Join(out.Path, c.Name)) { // as a container without a network has no resolv.conf
					c.Kind = served.Covered
				}
			default:
				c.Kind = served.Hidden
			}
			out.Children = append(out.Children, c)
		}
		t.Dirs = append(t.Dirs, out)
	}
	return t
}

func modeOf(a plan.Access) grants.Mode {
	if a == plan.ReadWrite {
		return grants.RW
	}
	return grants.RO
}

// permitted says whether what is asked for could be shown at all: it is neither a secret under another name nor a
// directory that holds one, which cannot be mounted whole. Such a directory can be listed, made and changed itself.
func (g *Files) permitted(r grants.Request) bool {
	itself := r.Op == "list" || policy.AccessOf(r.Op) == policy.Write
	if slices.Contains(g.s.In.Reveals, r.Path) { // under this name, and no other
		return true
	}
	if no, _ := g.s.View.Denied(r.Path); no || r.Dir && !itself && !g.s.View.Whole(r.Path) {
		return false
	}
	var st unix.Stat_t
	return r.Dir || unix.Lstat(r.Path, &st) != nil || !g.s.View.Secret(host.Inode{Dev: st.Dev, Ino: st.Ino})
}

// Secrecy is gatefs.AccessPolicy's. What lies beside a secret that may be shown does not exist, whatever its name.
func (g *Files) Secrecy(pid uint32, p string) grants.Secrecy {
	if !slices.Contains(g.s.In.Reveals, p) {
		if g.s.Names.Hides(p) && !g.mounted(p) || g.beside(p) || g.foreign().Over(p) == "" && g.s.Names.Other(p) {
			return grants.Secret
		}
		return grants.NoSecret
	}
	var st unix.Stat_t
	if unix.Lstat(p, &st) != nil || st.Mode&unix.S_IFMT != unix.S_IFREG {
		return grants.Secret
	}
	if g.Is(int(pid)) { // it builds, and nothing of it could be told
		return grants.AskedFor
	}
	if _, err := g.Mounter(); err != nil { // also: until there is an arbiter, whom a program may be ahead of
		return grants.AskedFor
	}
	switch g.s.Arbiter.Current(g.asking(grants.Request{PID: pid, Op: "open", Path: p})).Decision {
	case decide.Allow:
		return grants.Shown
	case decide.AskHuman:
		return grants.AskedFor
	}
	return grants.Secret
}

// mounted says whether a rule shows a secret by a mount.
func (g *Files) mounted(p string) bool {
	return slices.ContainsFunc(g.s.In.Grants, func(x planner.Grant) bool { return x.Reveal && x.Path == p })
}

// beside says whether a path lies in a secret directory of which one file may be shown.
func (g *Files) beside(p string) bool {
	return slices.ContainsFunc(g.leads(), func(dir string) bool { return host.Within(p, dir) })
}

// IsHistory is gatefs.AccessPolicy's: such paths are in the home, and no rule of the policy speaks of them.
func (g *Files) IsHistory(p string) bool {
	if path.Dir(p) != g.s.In.Facts.Home || !decide.IsHistory(p) {
		return false
	}
	if _, err := g.Mounter(); err != nil { // see Ask
		return false
	}
	v := g.s.Arbiter.Current(decide.Ask{Op: "write", Kind: policy.KindPath, Path: p})
	return v.Decision == decide.Deny && v.Silent
}

// asking words the server's question.
func (g *Files) asking(r grants.Request) decide.Ask {
	q := decide.Ask{PID: int(r.PID), Op: r.Op, Kind: policy.KindPath, Path: r.Path, Walk: r.Walk}
	switch r.Op {
	case "lookup", "open", "access", "xattr", "statfs":
		q.Op = "read"
	case "exec":
		q.Kind = policy.KindExec
	}
	if r.PID != 0 {
		q.Exe, q.Cwd = program.Links(q.PID)
	}
	if r.Dir {
		q.Flags = append(q.Flags, "dir")
	}
	if r.Socket {
		q.Op, q.Flags = "connect", append(q.Flags, "socket")
	}
	if r.Dir && g.foreign().Over(r.Path) != "" {
		q.Flags = append(q.Flags, decide.WholeTree)
	}
	if r.New {
		q.Of = request.Originals(g.s.In, r.Path, r.Dir)
	}
	if g.mounts(r) {
		q.Flags = append(q.Flags, decide.Mounted)
	}
	return q
}

// Foreign is gatefs.AccessPolicy's.
func (g *Files) Foreign(p string) string { return g.foreign().Over(p) }

// Config is gatefs.AccessPolicy's.
func (g *Files) Config(p string) bool { return g.s.Names.Config(p) }

// Marked is gatefs.AccessPolicy's.
func (g *Files) Marked(pid int, p string, text []byte) bool {
	return g.s.Marked != nil && g.s.Marked(pid, p, string(text))
}

// Ask is gatefs.AccessPolicy's: it puts the server's question and words the answer for it.
func (g *Files) Ask(ctx context.Context, r grants.Request) grants.Answer {
	if _, err := g.Mounter(); err != nil { // also: until there is an arbiter
		return grants.Answer{}
	}
	q := g.asking(r)
	if policy.AccessOf(q.Op) == policy.Write && !g.mayWrite(r.Path, r.Dir) {
		return grants.Answer{Errno: unix.EROFS}
	}
	if !g.permitted(r) {
		return grants.Answer{Errno: unix.ENOENT}
	}
	v := g.s.Arbiter.Ask(ctx, q)
	if v.Decision != decide.Allow {
		return grants.Answer{Errno: syscall.Errno(v.Errno)}
	}
	if policy.AccessOf(q.Op) == policy.Write {
		if e := g.refuseGuarded(q, false); e != 0 {
			return grants.Answer{Errno: e}
		}
	}
	g.release(q.Of, g.server.Grants.Release)
	return g.granting(r, policy.AccessOf(q.Op) == policy.Write, v)
}

// granting is what a yes mounts or shows: what the verdict says, and no more.
func (g *Files) granting(r grants.Request, writes bool, v decide.Verdict) grants.Answer {
	a := grants.Answer{Allow: true, Path: r.Path}
	if v.Scope == decide.Tree && v.Path != "" && !g.keeps(v.Path) {
		a.Path = v.Path
	}
	a.Names = r.Dir && a.Path == r.Path && (!v.Whole || g.keeps(r.Path) || !g.s.View.Whole(r.Path))
	if writes || r.Socket {
		a.Mode = grants.RW
	}
	if (a.Path != r.Path || r.Dir && !a.Names) && v.Life.Lasts() && g.writable(a.Path) {
		a.Mode = grants.RW // what is mounted read-only asks nobody who writes
	}
	switch foreign := g.foreign().Over(r.Path) != ""; {
	case a.Names && foreign:
		g.record(r, errForeign)
		return grants.Answer{}
	case a.Names && writes: // the directory itself is changed
		a.Once = true
	case !v.Life.Lasts() && !g.mounts(r):
		a.Once = true
	case !v.Life.Lasts():
		g.expire(a.Path, onceFor)
	case v.Life == decide.Until:
		g.expire(a.Path, time.Until(v.Until))
	}
	if a.Mode == grants.RW && !a.Once && (a.Path != r.Path || r.Dir && !a.Names) {
		a.Searched = g.guardedIn(a.Path) == nil
		g.opened(a.Path) // who waits goes on while it is mounted, and may have made a name before it is
	}
	return a
}

// mounts says whether an object is of use only where it is mounted.
func (g *Files) mounts(r grants.Request) bool {
	return r.Socket || r.Dir && g.foreign().Over(r.Path) != ""
}

// expire takes a grant back after a while.
func (g *Files) expire(p string, after time.Duration) {
	lapse(after, func() { _ = g.server.Grants.RevokeBelow(p) })
}

// lapse calls f after a while in which this program could run: who waited must have had the time to go on, also where
// the machine stood still.
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
func (g *Files) Is(pid int) bool {
	if pid == g.child {
		return true
	}
	return g.Able() && pid == g.agent.PID()
}

// Mounter waits until there is an agent.
func (g *Grounds) Mounter() (*agent.Agent, error) {
	select {
	case <-g.ready:
		return g.agent, nil
	case <-g.over:
		return nil, errSessionOver
	}
}

// Graft is called by the server with a path that was granted.
func (g *Files) Graft(p string, m grants.Mode, typ uint32, searched bool) error {
	a, err := g.Mounter()
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
	noexec := g.s.In.Only != nil // which is a matter of mounts
	if st.Mode&unix.S_IFMT == unix.S_IFREG && !noexec {
		return grants.ErrServe
	}
	if st.Mode&unix.S_IFMT == unix.S_IFREG && g.s.Names.Token(p) {
		g.record(grants.Request{Op: "read", Path: p}, errToken)
		return errToken
	}
	if st.Mode&unix.S_IFMT == unix.S_IFDIR && g.holdsSocket(p) {
		if m == grants.RW || noexec {
			g.record(grants.Request{Op: "write", Path: p, Dir: true}, errHoldsSocket)
			return errHoldsSocket
		}
		return grants.ErrServe
	}
	if m == grants.RW && st.Mode&unix.S_IFMT == unix.S_IFDIR {
		e := g.refuseGuarded(decide.Ask{Op: "write", Kind: policy.KindPath, Path: p}, !searched)
		if e != 0 {
			return e
		}
	}
	return g.shown(p, &st, m == grants.RW, a.Graft(g.graft(p, &st, m == grants.RW)))
}

// Revoke is called by the server when a grant has been taken back.
func (g *Files) Revoke(p string) error {
	a, err := g.Mounter()
	if err != nil {
		return err
	}
	if err = a.Ungraft(p, nil); errors.Is(err, unix.EINVAL) { // nothing is mounted: what was is released
		return nil
	}
	return err
}

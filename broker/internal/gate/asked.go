//go:build linux

package gate

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"sbx.example/sbx/broker/internal/arbiter"
	"sbx.example/sbx/broker/internal/child"
	"sbx.example/sbx/broker/internal/decide"
	"sbx.example/sbx/broker/internal/gate/askfs"
	"sbx.example/sbx/broker/internal/gate/grants"
	"sbx.example/sbx/broker/internal/host"
	"sbx.example/sbx/broker/internal/policy"
	"sbx.example/sbx/broker/internal/program"
	"sbx.example/sbx/broker/internal/request"
	"sbx.example/sbx/broker/plan"
)

// Asked is the engine that asks about what somebody else's sandbox hides. It mounts nothing later, and shows what it
// shows read-only.
type Asked struct {
	Arbiter *arbiter.Arbiter
	First   func() error // called before the first question; with an error nobody is asked anything
	// Never are the host's paths that are never shown, and Names the judge of all others; an error is all of them. It is
	// called once, when something is looked for.
	Never   func() ([]string, *request.NameGate, error)
	Outside func(pid uint32) uint32 // see askfs.Options
	Failed  func(error)             // told why nothing is shown

	server  *askfs.Server
	opening sync.Once
	closed  error
	listing sync.Once
	hides   func(p string, st *unix.Stat_t) bool
	names   *request.NameGate // nil: nothing is shown
	mu      sync.Mutex
	told    map[string]bool // of what is hidden
}

// Askable says why there can be no such engine on this host, nil if there can.
func Askable() error {
	if !(host.Facts{Kernel: host.Kernel()}).Since(5, 11) {
		return errors.New("overlays in user namespaces take Linux 5.11")
	}
	if !host.HasFuse() {
		return errors.New("/dev/fuse cannot be opened")
	}
	return nil
}

// maxTold bounds what of the hidden things that programs look for is on record.
const maxTold = 256

// Serve answers for the places of o on fd, which it owns.
func (g *Asked) Serve(fd int, o askfs.Options) (err error) {
	o.Ask, o.Hidden, o.Outside, o.Config = g.ask, g.hidden, g.Outside, g.config
	if g.server, err = askfs.New(fd, o); err == nil {
		go g.server.Serve()
	}
	return err
}

// Standing is Engine's: the server hears by itself when the sandbox stands.
func (g *Asked) Standing(*child.Child, *plan.Plan) {}

// Forget is Engine's.
func (g *Asked) Forget(p string) error {
	_, err := g.server.Grants.RevokeAll(p)
	return err
}

// End is Engine's.
func (g *Asked) End() {
	if g.server != nil {
		g.server.End()
	}
	g.Arbiter.Close()
	g.opening.Do(func() { g.closed = context.Canceled })
}

// ask puts a question of the server's.
func (g *Asked) ask(ctx context.Context, r grants.Request) grants.Answer {
	if g.opening.Do(func() { g.closed = g.First() }); g.closed != nil {
		return grants.Answer{}
	}
	q := reading(r.PID, r.Path)
	if r.Op == grants.OpStat.String() {
		q.Op = r.Op // the arbiter tells what only looks from the open that follows
	}
	if r.Dir {
		q.Flags = []string{"dir"}
	}
	v := g.Arbiter.Ask(ctx, q)
	if v.Decision != decide.Allow {
		return grants.Answer{}
	}
	a := grants.Answer{Allow: true, Path: r.Path, Once: !v.Life.Lasts()}
	if v.Scope == decide.Tree && v.Path != "" {
		a.Path = v.Path
	}
	a.Names = r.Dir && a.Path == r.Path && !v.Whole
	if v.Life == decide.Until {
		lapse(time.Until(v.Until), func() { _ = g.server.Grants.RevokeBelow(a.Path) })
	}
	return a
}

// reading words that a process wants to read something.
func reading(pid uint32, p string) decide.Ask {
	q := decide.Ask{PID: int(pid), Op: "read", Kind: policy.KindPath, Path: p}
	if pid != 0 {
		q.Exe, q.Cwd = program.Links(q.PID)
		if pids := host.PIDs(pid); len(pids) > 0 {
			q.Inside = pids[len(pids)-1]
		}
	}
	return q
}

// hidden says whether something is never shown, and puts on record that somebody looked for it.
func (g *Asked) hidden(pid uint32, p string, st *unix.Stat_t, told bool) bool {
	g.listing.Do(g.list)
	if !g.hides(p, st) {
		return false
	}
	g.mu.Lock()
	first := told && !g.told[p] && len(g.told) < maxTold
	if first {
		g.told[p] = true
	}
	g.mu.Unlock()
	if first {
		g.Arbiter.Refused(reading(g.Outside(pid), p), decide.Verdict{Errno: int(unix.ENOENT), Life: decide.Forever,
			Reason: HiddenReason + "it is never shown, whatever anybody answers"})
	}
	return true
}

// config says whether a file that was allowed is a repository's configuration.
func (g *Asked) config(p string) bool {
	g.listing.Do(g.list)
	return g.names != nil && g.names.Config(p)
}

// list finds out what is never shown: it, all below it, and each other name of a file.
func (g *Asked) list() {
	g.told = map[string]bool{}
	list, names, err := g.Never()
	if err != nil {
		g.Failed(err)
		g.hides = func(string, *unix.Stat_t) bool { return true }
		return
	}
	g.names = names
	files := map[host.Inode]bool{}
	for _, p := range list {
		var st unix.Stat_t
		if unix.Lstat(p, &st) == nil && st.Mode&unix.S_IFMT != unix.S_IFDIR {
			files[host.Inode{Dev: st.Dev, Ino: st.Ino}] = true
		}
	}
	g.hides = func(p string, st *unix.Stat_t) bool {
		return files[host.Inode{Dev: st.Dev, Ino: st.Ino}] || names.Hides(p) || names.Other(p) ||
			slices.ContainsFunc(list, func(h string) bool { return host.Within(p, h) })
	}
}

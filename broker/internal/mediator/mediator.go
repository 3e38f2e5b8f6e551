//go:build linux

package mediator

import (
	"fmt"
	"os"
	"path"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"sbx.example/sbx/broker/internal/agent"
	"sbx.example/sbx/broker/internal/changes"
	"sbx.example/sbx/broker/internal/child"
	"sbx.example/sbx/broker/internal/decide"
	"sbx.example/sbx/broker/internal/gate/grants"
	"sbx.example/sbx/broker/internal/gate/names"
	"sbx.example/sbx/broker/internal/gate/notify"
	"sbx.example/sbx/broker/internal/gate/writes"
	"sbx.example/sbx/broker/internal/guard"
	"sbx.example/sbx/broker/internal/host"
	"sbx.example/sbx/broker/internal/planner"
	"sbx.example/sbx/broker/internal/report"
	"sbx.example/sbx/broker/internal/repositories"
	"sbx.example/sbx/broker/internal/request"
	"sbx.example/sbx/broker/internal/secrets"
	"sbx.example/sbx/broker/plan"
)

// Mediator carries out what changes the judged trees of a session, serves what of them the kernel must not see itself,
// and records what was not carried out.
type Mediator struct {
	in       *planner.Input
	asker    Asker // nil: nobody is asked
	refusals *report.Refusals
	warn     func(string)
	names    *request.NameGate
	tops     func() []string // shownTops
	plan     *plan.Plan
	judging  sync.Mutex
	judges   map[string]*guard.Judge // of guarded directories, by path; with judging held
	roots    []writes.Root
	places   []writes.Place
	carries  atomic.Pointer[writes.Carrier]
	making   sync.Mutex // see writes.Options
	sockets  guard.Made // see writes.Options
	covers   covers
	changes  hostChanges
	last     lastAgent
	servers  fileServers
	nested   nestedCallers
	turn     names.Turn
	session  guard.Session     // what the session made itself: who serves the rest of a project knows it too
	Left     repositories.Left // what the session made that somebody may run outside
	granted  guard.Granted
	files    singleFiles
	gitlinks *repositories.Links
	configs  guard.Configs // judges configurations, whoever puts them in place
	looked   atomic.Int32  // how often the callers of file servers were looked for
	// Listed says of a path in a directory that was granted whether a wildcard of a list hides it, but not the directory.
	// nil: none does.
	Listed func(p, granted string) bool
	// Placeholder says whether a process of the agent's own was refused a mount point of its sandbox: it is on record,
	// and nothing to tell anybody. nil: there is no agent.
	Placeholder func(path string, pid int, exe string) bool
}

// Asker is the part of a session that asks about what is not granted.
type Asker interface {
	Decides() bool                          // the rest may be called: it records what is refused
	Refused(q decide.Ask, v decide.Verdict) // something was
	Hidden(q decide.Ask, v decide.Verdict)  // something was, as if it were not there
	Unmounting() func(path string) func()   // see writes.Options; nil: it mounts nothing
	Mounter() func() (*agent.Agent, error)  // who mounts what is granted; nil: nobody does
}

// New makes the one of a session that begins.
func New(in *planner.Input, a Asker, refused *report.Refusals, warn func(string)) *Mediator {
	md := &Mediator{in: in, asker: a, refusals: refused, warn: warn, judges: map[string]*guard.Judge{},
		names: request.NewNameGate(in)}
	md.nested.ready = make(chan struct{})
	md.granted = guard.Granted{Top: in.Project, GitDir: in.GitDir}
	md.Left.Began = time.Now().Add(-time.Second) // the clock of files is coarser
	md.Left.Foreign = in.Facts.Foreign
	md.gitlinks = &repositories.Links{Session: &md.session, Foreign: in.Facts.Foreign,
		Made: md.Left.AnyMade, Granted: md.granted}
	md.session.Witness, md.session.Parts, md.session.Linked = &md.Left, md.gitlinks.Above, md.gitlinks.Linked
	return md
}

// Planned takes in what the sandbox will be.
func (md *Mediator) Planned(p *plan.Plan) {
	md.tops = sync.OnceValue(md.shownTops)
	md.plan, md.configs.Elsewhere, md.configs.Granted = p, changes.Elsewhere(p), md.granted
	md.gitlinks.Trees, md.places = repositories.Writable(p), placesOf(p)
	if md.in.Turns != "" {
		md.turn = names.OpenTurn(md.in.Turns)
		md.session.Turn = md.turn.Take
	}
	md.configs.Indexed = func(file string) bool {
		if !path.IsAbs(file) {
			file = path.Join(md.in.Project, file)
		}
		return repositories.Indexed(path.Dir(file))
	}
}

// Tree takes the writable root of one.
func (md *Mediator) Tree(m *plan.Mount, root *os.File) {
	md.roots = append(md.roots, writes.Root{Path: m.Target, Host: md.plan.OnHost(m.Target), Tree: root})
}

// Any says whether there are judged trees.
func (md *Mediator) Any() bool { return md != nil && len(md.roots) > 0 }

// End has what the session wrote looked at for the last time.
func (md *Mediator) End() {
	if k := md.carries.Load(); k != nil {
		k.End()
	}
	md.covers.end()
	md.changes.end()
	md.last.end()
	md.nested.end()
	md.turn.Close()
}

// Carrier makes the one that does it; shared as in writes.Options.
func (md *Mediator) Carrier(shared bool) (notify.Carrier, error) {
	// While none is idle, one is taken away and given back around each call that waits. The carrier and what watches the
	// same trees (gate/late) wait nearly always.
	if runtime.GOMAXPROCS(0) < leastProcessors {
		runtime.GOMAXPROCS(leastProcessors)
	}
	id := md.plan.Identity
	o := writes.Options{Session: &md.session, GitDir: md.in.GitDir,
		Shared: shared, NoLinks: md.in.NoSymFollow, Refused: md.refuse,
		Places: md.places, Links: links(md.plan),
		Secrets: secrets.New(host.FS{}, md.in.Own, md.in.GitDir), Making: &md.making, Sockets: &md.sockets,
		Server:    md.servers.server,
		InsideUID: id.InsideUID, OutsideUID: id.OutsideUID, InsideGID: id.InsideGID, OutsideGID: id.OutsideGID}
	if md.in.Nested {
		o.Nested = md.nested.works
	}
	if md.plan.InPlace != nil {
		o.InPlace = inPlace(md.plan.Landlock)
		o.InPlace.Closed = md.in.Facts.Foreign.Closed
		for _, m := range md.in.Masked {
			o.InPlace.Copies[m.Path] = m.Text.Text
		}
	}
	if md.asker != nil {
		o.Unmounting = md.asker.Unmounting()
	}
	for _, r := range md.roots {
		top, place, err := md.guardedAt(r.Path)
		if err != nil {
			return nil, err
		}
		r.Granted, r.Place = top, place
		r.Check = func(rel string, what guard.Action, old, next []byte) error {
			return md.contents(path.Join(r.Host, rel), what, old, next)
		}
		o.Roots = append(o.Roots, r)
	}
	k := writes.New(o)
	md.carries.Store(k)
	return k, nil
}

// Listen answers the reports of the sandbox's system-call filter until that has ended.
func (md *Mediator) Listen(f *os.File) {
	var carrier notify.Carrier
	var err error
	if md.Any() {
		if carrier, err = md.Carrier(false); err != nil {
			md.warn(err.Error())
		}
	}
	if err = notify.Denials(f, carrier, md.refusals.Note); err != nil {
		md.warn(err.Error())
	}
}

// contents judges what is to get the name of a file whose contents are looked at.
func (md *Mediator) contents(file string, what guard.Action, old, next []byte) error {
	if what == guard.Index {
		return md.gitlinks.Check(file, old, next)
	}
	return md.configs.Check(inProject(md.in, file), old, next)
}

// made says whether a configuration at a path of the host's is the session's alone.
func (md *Mediator) made(file string, text []byte) bool {
	return md.configs.Made(inProject(md.in, file), text)
}

// inPlace is what the rules say of directories with hidden names: those that can be listed and not read.
func inPlace(l *plan.Landlock) *writes.InPlace {
	out := &writes.InPlace{Copies: map[string]string{}}
	for _, r := range l.Rules {
		if r.Access == planner.ListOnly {
			out.Split = append(out.Split, string(r.Path))
		}
	}
	for _, r := range l.Rules {
		if slices.Contains(out.Split, path.Dir(string(r.Path))) {
			out.Granted = append(out.Granted, string(r.Path))
		}
	}
	return out
}

// leastProcessors are how many the runtime has while calls are carried out, whatever the machine has. A third would
// cost a broker that many programs ask at once a tenth more memory.
const leastProcessors = 2

// leastFiles are the descriptors that a session with a gate takes while it carries out calls: a program is not to be
// told that it has too many files open itself.
const leastFiles = 48

// EnoughFiles says whether this process may have the files open that carrying calls out takes.
func EnoughFiles(p *plan.Plan) error {
	var limit unix.Rlimit
	carries := slices.ContainsFunc(p.Mounts, func(m plan.Mount) bool { return m.Kind == plan.Judged })
	if p.Gate == nil || !carries || unix.Getrlimit(unix.RLIMIT_NOFILE, &limit) != nil || limit.Cur >= leastFiles {
		return nil
	}
	return fmt.Errorf("carrying out what programs write takes %d open files: %w", leastFiles, unix.EMFILE)
}

// guardedAt is the guarded directory of the host's that dir, a path inside, is or lies in, and what holds in dir.
func (md *Mediator) guardedAt(dir string) (string, *guard.Place, error) {
	top := *request.GuardedTop(md.plan, dir)
	top.Target = md.plan.OnHost(top.Target)
	granted := top.Target
	md.judging.Lock()
	defer md.judging.Unlock()
	judge := md.judges[granted]
	if judge == nil {
		var err error
		if judge, err = request.GuardJudge(md.in, &top); err != nil {
			return "", nil, err
		}
		md.judges[granted] = judge
	}
	return granted, PlaceOf(judge, granted, strings.TrimPrefix(strings.TrimPrefix(md.plan.OnHost(dir),
		granted), "/")), nil
}

// PlaceOf is what holds in a directory below the granted one.
func PlaceOf(judge *guard.Judge, granted, rel string) *guard.Place {
	p := judge.RootAt(granted)
	for at := granted; ; {
		if _, err := os.Lstat(at + "/HEAD"); !host.NotExist(err) {
			p = p.Repository()
		}
		if rel == "" {
			return p
		}
		var name string
		name, rel, _ = strings.Cut(rel, "/")
		p, at = p.Below(name), at+"/"+name
	}
}

// placesOf are what is mounted on the trees after they were covered.
func placesOf(pl *plan.Plan) (out []writes.Place) {
	var covered []string
	for i := range pl.Mounts {
		m := &pl.Mounts[i]
		p := writes.Place{Path: m.Target}
		switch {
		case m.Kind == plan.Judged:
			covered = append(covered, p.Path)
			out = slices.DeleteFunc(out, func(o writes.Place) bool { return o.Path == p.Path }) // it is below that
			continue
		case m.Why == planner.MaskedWhy: // the judge says better than the mount why it cannot be changed
			continue
		case !slices.ContainsFunc(covered, func(top string) bool { return host.Within(p.Path, top) }):
			continue
		case m.Kind == plan.Mask && m.Why == planner.SocketWhy:
			continue
		case m.Kind == plan.Fuse && m.Access != plan.ReadOnly: // else what changes it would not come to its server
			p.How = writes.Served
		case m.Kind == plan.Bind && m.Why == planner.NativeWhy:
			p.How = writes.Native
		}
		if p.How != writes.Other {
			p.ID, _ = names.IDAt(unix.AT_FDCWD, pl.OnHost(p.Path))
		}
		out = append(out, p)
	}
	return out
}

// links are those of the sandbox's own directories.
func links(p *plan.Plan) map[string]string {
	out := map[string]string{}
	for i := range p.Mounts {
		if m := &p.Mounts[i]; m.Kind == plan.Symlink {
			out[m.Target] = m.Source
		}
	}
	if p.Gate == nil {
		return out
	}
	for _, d := range p.Gate.Dirs {
		for _, n := range d.Names {
			if n.Kind == plan.Symlink {
				out[path.Join(string(d.Path), string(n.Name))] = string(n.Target)
			}
		}
	}
	return out
}

// refuse records what was not carried out.
func (md *Mediator) refuse(r writes.Refusal) {
	md.refused(r.Path, grants.Request{PID: r.PID, Path: r.Path, Why: r.Err, Hidden: r.Hidden, Kept: r.Kept})
}

// Denied takes in a call that the filter refused.
func (md *Mediator) Denied(d notify.Denial) { md.refusals.Note(d) }

// Attribute says who is told whose refusals those are that come.
func (md *Mediator) Attribute(to func(pid uint32, line string)) { md.refusals.Attribute = to }

// Standing takes in what the sandbox has, when it stands, and before the gate takes the namespaces.
func (md *Mediator) Standing(c *child.Child) {
	md.nested.standing(c)
	md.changes.standing(c)
	md.last.standing(c)
}

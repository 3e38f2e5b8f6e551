package live

import (
	"fmt"
	"os"
	"path"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"golang.org/x/sys/unix"

	"sbx/broker/internal/gate/gatefs"
	"sbx/broker/internal/gate/notify"
	"sbx/broker/internal/gate/writes"
	"sbx/broker/internal/guard"
	"sbx/broker/internal/host"
	"sbx/broker/internal/planner"
	"sbx/broker/internal/request"
	"sbx/broker/internal/secrets"
	"sbx/broker/plan"
)

// judged are the trees of a session in which the broker carries out what changes them.
type judged struct {
	in      *planner.Input
	asks    *asking
	refused *blocked
	plan    *plan.Plan
	roots   []writes.Root
	carries atomic.Pointer[writes.Carrier]
	making  sync.Mutex // see writes.Options
	sockets guard.Made // see writes.Options
	covers  covers
	repeats repeats
	servers servers
	session guard.Session // what the session made itself: who serves the rest of a project knows it too
}

// tree takes the writable root of one.
func (j *judged) tree(m *plan.Mount, root *os.File) {
	j.roots = append(j.roots, writes.Root{Path: m.Target, Tree: root})
}

func (j *judged) any() bool { return j != nil && len(j.roots) > 0 }

// end has what the session wrote looked at for the last time.
func (j *judged) end() {
	if k := j.carries.Load(); k != nil {
		k.End()
	}
	j.covers.end()
	j.repeats.end()
}

// carrier makes the one that does it; shared as in writes.Options.
func (j *judged) carrier(shared bool) (notify.Carrier, error) {
	if runtime.GOMAXPROCS(0) < 2 { // one would be taken away and given back around each call that waits
		runtime.GOMAXPROCS(2)
	}
	configs := gitConfigs(j.in, j.plan)
	id := j.plan.Identity
	o := writes.Options{Session: &j.session, GitDir: j.in.GitDir,
		Shared: shared, NoLinks: j.in.NoSymFollow, Refused: j.refuse,
		Places: j.places(), Links: links(j.plan),
		Secrets: secrets.New(host.FS{}, j.in.Own, j.in.GitDir), Making: &j.making, Sockets: &j.sockets,
		Server:    j.servers.server,
		InsideUID: id.InsideUID, OutsideUID: id.OutsideUID, InsideGID: id.InsideGID, OutsideGID: id.OutsideGID}
	for _, r := range j.roots {
		top, place, err := guardedAt(j.in, j.plan, r.Path)
		if err != nil {
			return nil, err
		}
		r.Granted, r.Place = top, place
		r.Check = func(rel string, old, next []byte) error {
			return configs.Check(inProject(j.in, path.Join(r.Path, rel)), old, next)
		}
		o.Roots = append(o.Roots, r)
	}
	k := writes.New(o)
	j.carries.Store(k)
	return k, nil
}

// leastFiles are the descriptors that a session with a gate takes while it carries out calls: a program is not to be
// told that it has too many files open itself.
const leastFiles = 48

// enoughFiles says whether this process may have the files open that carrying calls out takes.
func enoughFiles(p *plan.Plan) error {
	var limit unix.Rlimit
	carries := slices.ContainsFunc(p.Mounts, func(m plan.Mount) bool { return m.Kind == plan.Judged })
	if p.Gate == nil || !carries || unix.Getrlimit(unix.RLIMIT_NOFILE, &limit) != nil || limit.Cur >= leastFiles {
		return nil
	}
	return fmt.Errorf("carrying out what programs write takes %d open files: %w", leastFiles, unix.EMFILE)
}

// guardedAt is the guarded directory that dir is, or lies in, and what holds in dir.
func guardedAt(in *planner.Input, p *plan.Plan, dir string) (string, *guard.Place, error) {
	top := request.GuardedTop(p, dir)
	judge, err := request.GuardJudge(in, top)
	if err != nil {
		return "", nil, err
	}
	granted := top.Target
	return granted, placeOf(judge, granted, strings.TrimPrefix(strings.TrimPrefix(dir, granted), "/")), nil
}

// placeOf is what holds in a directory below the granted one.
func placeOf(judge *guard.Judge, granted, rel string) *guard.Place {
	p := judge.RootAt(granted)
	for at := granted; ; {
		if _, err := os.Lstat(at + "/HEAD"); err == nil {
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

// places are what is mounted on the trees after they were covered.
func (j *judged) places() (out []writes.Place) {
	var covered []string
	for i := range j.plan.Mounts {
		m := &j.plan.Mounts[i]
		p := writes.Place{Path: m.Target}
		switch {
		case m.Kind == plan.Judged:
			covered = append(covered, p.Path)
			continue
		case m.Why == planner.MaskedWhy: // the judge says better than the mount why it cannot be changed
			continue
		case !slices.ContainsFunc(covered, func(top string) bool { return host.Within(p.Path, top) }):
			continue
		case m.Kind == plan.Mask && m.Why == planner.SocketWhy:
			continue
		case m.Kind == plan.Fuse:
			p.How = writes.Served
		case m.Kind == plan.Bind && m.Why == planner.NativeWhy:
			p.How = writes.Native
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
func (j *judged) refuse(r writes.Refusal) {
	kept(r.Path, gatefs.Request{PID: r.PID, Path: r.Path, Why: r.Err, Kept: r.Kept}, j.asks, j.refused)
}

//go:build linux

package live

import (
	"fmt"
	"path"
	"strings"

	"sbx.example/sbx/broker/internal/caches"
	"sbx.example/sbx/broker/internal/host"
	"sbx.example/sbx/broker/internal/planner"
	"sbx.example/sbx/broker/internal/quoting"
	"sbx.example/sbx/broker/plan"
)

// showCaches shows what earlier sessions of the project left in its caches.
func (x *attempt) showCaches() {
	x.kept = caches.Open(caches.Root(x.root), x.in.Project)
	for i := range x.in.Grants {
		if g := &x.in.Grants[i]; len(g.Keep) > 0 {
			g.Layer = x.kept.Layer(g.Path)
		}
	}
}

// keepCaches keeps what the session wrote there for the next one, where that could have been left in the project as
// well: who may not write the project must not act upon its later sessions.
func (x *attempt) keepCaches() {
	keeps := !x.r.Keep && x.in.Containers == nil && writesProject(x.plan, x.in.Project)
	for _, g := range x.in.Grants {
		upper := x.upper(g)
		if upper == "" {
			continue
		}
		if g.Bin != "" && !x.r.Quiet {
			x.sayInstalled(g, upper)
		}
		if len(g.Keep) == 0 || !keeps {
			continue
		}
		fresh, err := x.kept.Take(g.Path, upper, g.Keep)
		if err != nil {
			x.b.Warn(err.Error() + ": tools fetch it again in the next run")
		}
		if fresh && !x.r.Quiet {
			x.b.Warn("what tools fetch and build is kept for the next run of this project, in " +
				quoting.Quote(x.kept.Dir) + " (--caches overlay throws it away)")
		}
	}
}

// upper is the session's own layer over a cache, "" if there is none.
func (x *attempt) upper(g planner.Grant) string {
	if g.Mode != planner.Overlay || g.Why != planner.CacheWhy {
		return ""
	}
	canon, _, _, _ := host.Resolve(x.in.FS, g.Path)
	for i := range x.plan.Mounts {
		m := &x.plan.Mounts[i]
		if m.Target != canon || m.Why != planner.CacheWhy {
			continue
		}
		for _, dir := range [...]string{m.Upper, m.Source} {
			if strings.HasPrefix(dir, x.s.Dir+"/overlay/") {
				return dir
			}
		}
	}
	return ""
}

// writesProject says whether what is written in the project stays there.
func writesProject(p *plan.Plan, project string) bool {
	for i := range p.Mounts {
		m := &p.Mounts[i]
		if p.OnHost(m.Target) == project && (m.Kind == plan.Bind || m.Kind == plan.Fuse) && m.Access == plan.ReadWrite {
			return m.Source == project
		}
	}
	return false
}

// maxInstalled is how many programs are named.
const maxInstalled = 5

// sayInstalled says which programs were installed in a place of the home: they are the session's.
func (x *attempt) sayInstalled(g planner.Grant, upper string) {
	dir := path.Join(g.Path, g.Bin)
	names := caches.Installed(upper, g.Bin)
	if len(names) == 0 {
		return
	}
	x.b.Warn(fmt.Sprintf("installed in %s and gone with the session: %s (--rw %s keeps programs there)",
		quoting.Quote(dir), plan.Few(quoting.All(names), maxInstalled, ", "), quoting.Shell(dir)))
}

package cli

import (
	"os"
	"path"
	"runtime"
	"strings"

	"sbx/broker/internal/changes"
	"sbx/broker/internal/gate/gatefs"
	"sbx/broker/internal/gate/notify"
	"sbx/broker/internal/gate/writes"
	"sbx/broker/internal/guard"
	"sbx/broker/internal/host"
	"sbx/broker/internal/planner"
	"sbx/shared/plan"
)

// judged are the trees of a session in which the broker carries out what changes them.
type judged struct {
	in      *planner.Input
	asks    *asking
	refused *blocked
	plan    *plan.Plan
	roots   []writes.Root
	session guard.Session // what the session made itself: who serves the rest of a project knows it too
}

// tree takes the writable root of one.
func (j *judged) tree(m *plan.Mount, root *os.File) {
	j.roots = append(j.roots, writes.Root{Path: string(m.Target), Tree: root})
}

func (j *judged) carries() bool { return j != nil && len(j.roots) > 0 }

// carrier makes the one that does it; shared as in writes.Options.
func (j *judged) carrier(shared bool) (notify.Carrier, error) {
	if runtime.GOMAXPROCS(0) < 2 { // one would be taken away and given back around each call that waits
		runtime.GOMAXPROCS(2)
	}
	configs := &guard.Configs{Elsewhere: changes.Elsewhere(j.plan)}
	id := j.plan.Identity
	o := writes.Options{Session: &j.session, Shared: shared, NoLinks: j.in.NoSymFollow, Refused: j.refuse,
		InsideUID: id.InsideUID, OutsideUID: id.OutsideUID, InsideGID: id.InsideGID, OutsideGID: id.OutsideGID}
	for _, r := range j.roots {
		r.Places = j.places(r.Path)
		m := j.granted(r.Path)
		judge, err := guardJudge(j.in, m)
		if err != nil {
			return nil, err
		}
		r.Granted = string(m.Target)
		above := strings.TrimPrefix(strings.TrimPrefix(r.Path, r.Granted), "/")
		r.Place = placeOf(judge, r.Granted, above)
		r.Check = func(rel string, old, next []byte) error {
			return configs.Check(inProject(j.in, m, path.Join(above, rel)), old, next)
		}
		o.Roots = append(o.Roots, r)
	}
	return writes.New(o), nil
}

// granted is the operation of the guarded directory that a tree lies in, or is.
func (j *judged) granted(dir string) *plan.Mount {
	for i := range j.plan.Mounts {
		if m := &j.plan.Mounts[i]; m.Kind == plan.Fuse && m.Target != "/" && host.Within(dir, string(m.Target)) {
			return m
		}
	}
	return &plan.Mount{Target: plan.Bytes(dir)}
}

// placeOf is what holds in a directory below the granted one.
func placeOf(judge *guard.Judge, granted, rel string) *guard.Place {
	p := judge.Root()
	for at := granted; rel != ""; {
		if _, err := os.Lstat(at + "/HEAD"); err == nil {
			p = p.Repository()
		}
		var name string
		name, rel, _ = strings.Cut(rel, "/")
		p, at = p.Below(name), at+"/"+name
	}
	return p
}

// places are what is mounted on a tree after it was covered.
func (j *judged) places(dir string) (out []string) {
	covered := false
	for i := range j.plan.Mounts {
		m := &j.plan.Mounts[i]
		p := string(m.Target)
		if p == dir && m.Kind == plan.Judged {
			covered = true
		} else if covered && p != dir && host.Within(p, dir) {
			out = append(out, p)
		}
	}
	return out
}

// refuse records what was not carried out.
func (j *judged) refuse(r writes.Refusal) {
	kept(r.Path, gatefs.Request{PID: r.PID, Path: r.Path, Why: r.Err}, j.asks, j.refused)
}

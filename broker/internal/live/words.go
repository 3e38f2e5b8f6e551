//go:build linux

package live

import (
	"cmp"
	"errors"
	"os"
	"path"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sys/unix"

	"sbx.example/sbx/audit"
	"sbx.example/sbx/broker/internal/confine"
	"sbx.example/sbx/broker/internal/gate"
	"sbx.example/sbx/broker/internal/gate/gatefs"
	"sbx.example/sbx/broker/internal/gate/served"
	"sbx.example/sbx/broker/internal/host"
	"sbx.example/sbx/broker/internal/input"
	"sbx.example/sbx/broker/internal/mediator"
	"sbx.example/sbx/broker/internal/planner"
	"sbx.example/sbx/broker/internal/policy"
	"sbx.example/sbx/broker/internal/report"
	"sbx.example/sbx/broker/internal/request"
	"sbx.example/sbx/broker/plan"
)

// Words hold sbx's own secrets and guard under a sandbox that somebody else's words describe (package bwrap).
type Words struct {
	env      []string
	std      [3]*os.File
	settings request.Settings
	in       *planner.Input
	md       *mediator.Mediator
	refusals report.Refusals
	guarded  []string      // the project, and the trees that are written
	mu       sync.Mutex    // for lost
	lost     []audit.Event // what this host could not give
	hidden   []string      // see Hidden
	asking   *approvals    // nil: nobody is asked
	engine   *gate.Asked
}

// NewWords reads the user's and the organisation's settings; nil where they say neither bwrap.enforce nor bwrap.ask.
func NewWords(env []string, std [3]*os.File) (*Words, error) {
	who := host.Who(env)
	src := request.Sources(env, who, "")
	if asked, err := src.AskFor("bwrap.enforce", "bwrap.ask"); err != nil || !asked {
		return nil, err
	}
	layers, err := policy.Load(src)
	if err != nil {
		return nil, err
	}
	layers.Vars.Project = cmp.Or((&request.Request{}).ProjectRoot(who), "/") // no file of which is read
	e, err := policy.Merge(layers, nil)
	if err != nil || !e.Bwrap.Enforce && !e.Bwrap.Ask {
		return nil, err
	}
	layers.Policy, _ = e.Bound(layers.Policy)
	w := &Words{env: env, std: std, settings: request.Settings{Effective: e, Layers: layers}}
	return w, w.makeOwn()
}

// own are the folders of sbx's settings and of its records, where there is a home for them.
func (w *Words) own() (out []string) {
	for _, home := range [...]string{w.settings.Layers.Vars.XDGConfigHome, w.settings.Layers.Vars.XDGStateHome} {
		if home != "" {
			out = append(out, path.Clean(home+"/sbx"))
		}
	}
	return out
}

// makeOwn makes these: what is missing cannot be covered, and a program that could make it would write settings and
// records. Where this process cannot make one, the program cannot either.
func (w *Words) makeOwn() error {
	for _, dir := range w.own() {
		err := os.MkdirAll(dir, 0o700)
		if err != nil && !errors.Is(err, unix.EACCES) && !errors.Is(err, unix.EROFS) {
			return err
		}
	}
	return nil
}

// warn is for the record: what a caller of bubblewrap reads on its standard error is the program's.
func (w *Words) warn(line string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.lost = append(w.lost, audit.Event{Kind: audit.KindLoss, Reason: line})
}

// Hidden is bwrap.Under's.
func (w *Words) Hidden(read, write []string) ([]string, error) {
	facts := host.Read(w.env)
	r := &input.Run{Request: &request.Request{}, Env: w.env, Warn: w.warn}
	in, err := r.Shown(w.settings, facts, read, write)
	if err != nil {
		return nil, err
	}
	w.in, w.md = in, mediator.New(in, nil, &w.refusals, w.warn)
	w.guarded = slices.DeleteFunc(append(slices.Clone(write), in.Project), func(p string) bool {
		return p == "" || p != in.Project && !planner.Guardable(p)
	})
	hidden, losses, err := planner.Hidden(*in)
	for _, l := range losses {
		w.warn(l.String())
	}
	w.hidden = hidden
	return hidden, err
}

// Holds is bwrap.Under's. What has a guarded name in the project, or in another tree that is written, stays as it is;
// elsewhere who names such a thing wants it changed, as with sbx run --rw.
func (w *Words) Holds(p string) (fixed, guarded bool) {
	fixed = slices.ContainsFunc(w.guarded, func(top string) bool {
		return p != top && host.Within(p, top) && !planner.Guardable(strings.TrimPrefix(p, top))
	})
	return fixed, slices.Contains(w.guarded, p)
}

// Planned is bwrap.Under's. It sets the limits of sbx run that need no control group.
func (w *Words) Planned(p *plan.Plan) {
	p.Limits = confine.Rlimits(confine.ProcessLimit(w.settings.Limits.Pids))
	w.md.Planned(p)
}

// Guard is bwrap.Under's.
func (w *Words) Guard(init int, m *plan.Mount, root *served.Dir) (gatefs.Options, error) {
	at := *m
	at.Target = m.Source // as it is called on the host
	judge, err := request.GuardJudge(w.in, &at)
	if err != nil {
		return gatefs.Options{}, err
	}
	root.Zone = mediator.PlaceOf(judge, m.Source, "")
	return w.md.Guarding(init, m.Source, m.Source), nil
}

// Blocked is bwrap.Under's.
func (w *Words) Blocked() []audit.Event {
	if w.md != nil {
		w.md.End()
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return append(w.lost, w.refusals.Events(true)...)
}

package input

import (
	"fmt"
	"slices"

	"sbx.example/sbx/broker/internal/confine"
	"sbx.example/sbx/broker/internal/doors"
	"sbx.example/sbx/broker/internal/gate"
	"sbx.example/sbx/broker/internal/host"
	"sbx.example/sbx/broker/internal/launch"
	"sbx.example/sbx/broker/internal/planner"
	"sbx.example/sbx/broker/internal/request"
	"sbx.example/sbx/broker/plan"
	"sbx.example/sbx/seccompbpf"
)

// Make turns the request, the configuration and the facts into what planner.Build takes, and into what the session
// opens beside that.
func (r *Run) Make(s request.Settings, facts host.Facts) (*planner.Input, *doors.Doors, error) {
	in, err := r.begin(s, facts)
	if err != nil {
		return nil, nil, err
	}
	if err = r.view(s, in); err != nil {
		return nil, nil, err
	}
	if in.TmpSize, err = confine.TmpSize(s.FS.TmpSize); err != nil {
		return nil, nil, err
	}
	in.Limits = confine.Rlimits(confine.ProcessLimit(s.Limits.Pids))
	in.InotifyInstances, in.InotifyWatches = confine.InotifyLimit("instances"), confine.InotifyLimit("watches")
	in.Losses = append(in.Losses, confine.CoreLosses(in.Limits, host.CorePattern())...)
	if err = r.environment(s, in, facts); err != nil {
		return nil, nil, err
	}
	r.showToolConfs(s, in)
	r.pnpmStore(s, in)
	open := &doors.Doors{Request: r.Request, Settings: s, In: in, Env: r.Env, Notify: r.Engine == gate.EngineNotify,
		Helper: r.Helper || r.InPlace}
	if err = r.outside(s, in, open); err != nil {
		return nil, nil, err
	}
	r.labels(s, in, open)
	if err = r.onlyThese(s, in); err != nil {
		return nil, nil, err
	}
	in.Asks = r.Asks
	in.Direct, in.Bubblewrap = r.Helper, r.Bubblewrap
	if err = r.filters(s, in); err != nil {
		return nil, nil, err
	}
	in.Agent = r.Engine == gate.EngineNotify && !in.Direct
	if err = in.Refer(r.Env); err != nil {
		return nil, nil, err
	}
	switchOff(r.Hooks, r.Env, in)
	return in, open, nil
}

// servesRoot says whether the broker serves the root of a session with that engine.
func servesRoot(engine string) bool { return engine == gate.EngineFiles }

// outside lets in what is reached of the host: sockets, stores, devices, the terminal; and sandboxes and containers.
func (r *Run) outside(s request.Settings, in *planner.Input, open *doors.Doors) (err error) {
	if err = open.Sockets(); err != nil {
		return err
	}
	if err = open.Stores(); err != nil {
		return err
	}
	hideSockets(in)
	in.TTY = launch.HasTerminal(r.Std)
	if in.Stdio, err = launch.Classify(r.Std, in.TTY); err != nil {
		return err
	}
	if err = r.machines(s, in); err != nil {
		return err
	}
	if !r.VM { // else its kernel is the program's own
		if err = open.Nested(); err != nil {
			return err
		}
	}
	if err = open.Containers(); err != nil {
		return err
	}
	open.Tools()
	if err = r.devContainer(s, in); err != nil {
		return err
	}
	return r.virtual(s, in)
}

// filters compiles the system-call filters: that of the program, and the one with which the broker carries out what is
// written.
func (r *Run) filters(s request.Settings, in *planner.Input) (err error) {
	older(r.Hooks, in)
	toggles := seccompbpf.Toggles{
		KVM: in.KVM, Namespaces: in.Nested, Containers: in.Containers != nil, SUIDBits: in.Containers != nil,
		Debug:        s.Sandbox.Debug,
		Only:         in.Only != nil,
		NotifyDenied: in.Facts.Since(5, 19) && !in.Facts.Reported, Notify: r.Engine == gate.EngineNotify,
		OneID: !in.Direct && !in.InPlace && !in.Nested, UID: in.Facts.UID, GID: in.Facts.GID,
		InPlace: in.InPlace, SignalsLeave: in.InPlace && in.Facts.Landlock < 6,
	}
	if in.Seccomp, err = filter(toggles); err != nil {
		return err
	}
	// Where another program builds the sandbox the broker's own mounts are what it writes through, and they execute.
	if toggles.NotifyDenied && !(in.Direct && in.Only != nil) {
		toggles.Writes = true
		judging, err := filter(toggles)
		if err != nil {
			return err
		}
		in.Judging = &judging
	}
	return r.filterOfReads(in, toggles)
}

// hideSockets hides the sockets of the host that lie in a granted tree: a read-only mount does not stop
// connect(2). What the project itself holds is the program's own business.
func hideSockets(in *planner.Input) {
	for _, p := range host.Sockets() {
		if slices.ContainsFunc(in.Grants, func(g planner.Grant) bool { return g.Socket && g.Path == p }) {
			continue
		}
		for _, g := range in.Grants {
			if g.Mode != planner.Scratch && p != g.Path && host.Within(p, g.Path) && !host.Within(p, "/run") &&
				!host.Within(p, in.Project) && !ownPlace(p) {
				in.Hides = append(in.Hides, planner.Hide{Path: p, Why: "a socket of the host"})
				break
			}
		}
	}
}

// filter compiles the system-call filter for this machine. With NotifyDenied, refused calls that only somebody
// who wants out makes come to the broker, which refuses them and says so. With Notify, so do all that name a path.
func filter(toggles seccompbpf.Toggles) (plan.Seccomp, error) {
	prog, err := seccompbpf.Program(arch, toggles)
	if err != nil {
		return plan.Seccomp{}, fmt.Errorf("compiling the system-call filter: %w", err)
	}
	s := plan.Seccomp{Rules: "default", Notify: toggles.NotifyDenied || toggles.Notify, Program: make([]plan.Insn,
		len(prog))}
	for i, in := range prog {
		s.Program[i] = plan.Insn(in)
	}
	return s, nil
}

// BuiltBy is what a Run says of the program that builds the sandbox; nil: sbx does.
func BuiltBy(h *launch.Helper) (helper bool, bubblewrap *planner.Bubblewrap) {
	if h == nil || !h.Bubblewrap {
		return h != nil, nil
	}
	return true, &planner.Bubblewrap{Setuid: h.Setuid}
}

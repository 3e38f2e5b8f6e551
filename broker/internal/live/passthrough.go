//go:build linux

package live

import (
	"os"
	"path"

	"sbx.example/sbx/audit"
	"sbx.example/sbx/broker/internal/host"
	"sbx.example/sbx/broker/internal/input"
	"sbx.example/sbx/broker/internal/launch"
	"sbx.example/sbx/broker/internal/planner"
	"sbx.example/sbx/broker/internal/request"
	"sbx.example/sbx/broker/internal/session"
	"sbx.example/sbx/broker/plan"
)

// passthrough runs the command on the host: the off switch, never a fallback that nobody sees.
func (b *Broker) passthrough(r *run, facts host.Facts, cfg request.Settings, why string) (Outcome, error) {
	b.Early.End()
	b.Warn("NO SANDBOX (" + why + "): " + plan.Bytes(r.argv[0]).Quote() + " runs on the host with all of your rights")
	in := &planner.Input{Argv: r.argv, Env: request.OnHost(b.Env, &r.Request), FS: host.FS{}}
	dir, err := input.Workdir(r.Request, "", facts, in.FS) // a project may set one for its sandbox
	if err != nil {
		return Outcome{}, err
	}
	exe, err := planner.LookPath(in, dir)
	if err != nil {
		return Outcome{}, err
	}
	if err := b.auditUnsandboxed(r, facts, cfg, why); err != nil {
		return Outcome{}, &planner.Refusal{What: "writing the audit line of a run without a sandbox", Err: err,
			Hint: "sbx does not run anything on the host that it cannot record"}
	}
	var backend launch.Backend = launch.Passthrough{}
	res, err := backend.Execute(b.context(), launch.Job{Path: exe, Argv: r.argv, Env: in.Env, Dir: dir,
		Options: launch.Options{Stdio: b.Std, Signals: b.Signals, Timeout: r.timeout, Stays: b.Context != nil}})
	if err != nil {
		return Outcome{}, err
	}
	return Outcome{Result: res}, nil
}

// auditUnsandboxed writes down that something runs on the host.
func (b *Broker) auditUnsandboxed(r *run, facts host.Facts, cfg request.Settings, why string) error {
	root, err := session.Root(host.Lookup(b.Env, "XDG_STATE_HOME"), facts.Home)
	if err != nil {
		return err
	}
	w, err := audit.Create(path.Join(path.Dir(root), "audit"), "nosandbox-"+session.NewID(),
		audit.Options{Syslog: b.forward(cfg)})
	if err != nil {
		return err
	}
	if _, err := w.Append(audit.Event{Kind: "exec", Decision: "allow", Op: "exec", Path: r.argv[0],
		Reason: "no sandbox: " + why, UID: os.Getuid(), PID: os.Getpid()}); err != nil {
		return err
	}
	return w.Close()
}

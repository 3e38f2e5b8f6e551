package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"sbx.example/sbx/audit"
	"sbx.example/sbx/broker/internal/held"
	"sbx.example/sbx/broker/internal/host"
	"sbx.example/sbx/broker/internal/input"
	"sbx.example/sbx/broker/internal/launch"
	"sbx.example/sbx/broker/internal/planner"
	"sbx.example/sbx/broker/internal/request"
	"sbx.example/sbx/broker/internal/seatbelt"
	"sbx.example/sbx/broker/internal/session"
)

// shell is a person's shell where SHELL does not say it.
const shell = "/bin/zsh"

// runNew runs argv in a new sandbox.
func (t *term) runNew(r *request.Request, argv, _ []string) int {
	r.Argv, r.Settled = argv, t.settled
	if err := r.Misread(argv); err != nil {
		return t.fail(err)
	}
	if r.Detach {
		return t.fail(&planner.Refusal{What: "--detach works on Linux only",
			Hint: "nohup sbx run ... & leaves a session in the background"})
	}
	if r.DryRun {
		return t.dryPlace(*r, shell)
	}
	end, err := t.run(r)
	if err != nil {
		return t.fail(err)
	}
	if end.TimedOut && !r.Quiet {
		t.warn("timed out: the program was ended, and what it had started goes on in its sandbox")
	}
	return end.Status()
}

func (t *term) run(r *request.Request) (end launch.End, err error) {
	facts := host.Read(t.Env)
	s, err := r.Settings(t.Env, facts, r.ProjectRoot(facts))
	if err != nil {
		return end, err
	}
	if len(r.Argv) == 0 {
		r.Argv = []string{cmp.Or(host.Lookup(t.Env, "SHELL"), shell)}
	}
	root, err := session.Root(host.Lookup(t.Env, "XDG_STATE_HOME"), facts.Home)
	if err != nil {
		return end, err
	}
	logs := filepath.Join(filepath.Dir(root), "audit")
	if !s.Sandbox.Enabled {
		return t.passthrough(r, s, facts, logs)
	}
	if b := s.Sandbox.Backend; b != "auto" {
		return end, &planner.Refusal{What: "the backend " + b + " (" + s.Origin("sandbox.backend") + ") works on Linux only",
			Hint: "sandbox.backend = auto takes what there is"}
	}
	sockets, err := t.ControlRoot()
	if err != nil {
		return end, err
	}
	dir, err := session.Create(root, r.Name)
	if err != nil {
		return end, err
	}
	x, err := t.place(r, r.Argv, s, facts, dir.ID, dir.Dir)
	if err == nil {
		err = accepted(s.Sandbox.Strict, x.losses)
	}
	if err != nil {
		dir.Discard()
		return end, err
	}
	if !r.Quiet {
		t.lost(x.losses, r.Verbose)
	}
	j := held.Job{Sandbox: seatbelt.Program, Session: dir, Logs: logs, Sockets: sockets, Profile: x.text, Plan: x.plan,
		Losses: x.losses, About: s.Profile.Name, Stdio: t.Std, Timeout: s.Sandbox.Timeout}
	return j.Run(context.Background())
}

// lost says what the sandbox lacks: each of it, or what is lost in every run in one line.
func (t *term) lost(losses []planner.Loss, all bool) {
	always := 0
	for _, l := range losses {
		if l.Always && !all {
			always++
			continue
		}
		t.warn(l.String())
	}
	if always > 0 {
		t.warn(fmt.Sprintf("macOS cannot hold %d things that Linux does: sbx doctor lists them", always))
	}
}

// passthrough runs the command on the host: the off switch, never a fallback that nobody sees.
func (t *term) passthrough(r *request.Request, s request.Settings, facts host.Facts, logs string) (end launch.End,
	err error) {
	why := s.Origin("sandbox.enabled")
	t.warn("NO SANDBOX (" + why + "): " + quote(r.Argv[0]) + " runs on the host with all of your rights")
	in := &planner.Input{Argv: r.Argv, Env: request.OnHost(t.Env, r), FS: host.FS{}}
	dir, err := input.Workdir(*r, "", facts, in.FS)
	if err != nil {
		return end, err
	}
	exe, err := planner.LookPath(in, dir)
	if err != nil {
		return end, err
	}
	if err := noteUnsandboxed(logs, r.Argv[0], why); err != nil {
		return end, &planner.Refusal{What: "writing the audit line of a run without a sandbox", Err: err,
			Hint: "sbx does not run anything on the host that it cannot record"}
	}
	return launch.Outside{Path: exe, Argv: r.Argv, Env: in.Env, Dir: dir, Stdio: t.Std,
		Timeout: time.Duration(s.Sandbox.Timeout)}.Run(context.Background())
}

// noteUnsandboxed writes down that something runs on the host.
func noteUnsandboxed(logs, name, why string) error {
	w, err := audit.Create(logs, "nosandbox-"+session.NewID(), audit.Options{})
	if err != nil {
		return err
	}
	_, err = w.Append(audit.Event{Kind: audit.KindExec, Decision: "allow", Op: "exec", Path: name,
		Reason: "no sandbox: " + why, UID: os.Getuid(), PID: os.Getpid()})
	return errors.Join(err, w.Close())
}

// accepted says whether what is lost is.
func accepted(strict bool, losses []planner.Loss) error {
	var lost []error
	for _, l := range losses {
		if strict && !l.Price {
			lost = append(lost, errors.New(l.String()))
		}
	}
	if len(lost) == 0 {
		return nil
	}
	return &planner.Refusal{What: "--strict", Err: errors.Join(lost...),
		Hint: "run without --strict to accept what is lost"}
}

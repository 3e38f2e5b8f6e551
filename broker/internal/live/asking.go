//go:build linux

package live

import (
	"errors"
	"fmt"
	"log"
	"os"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"sbx.example/sbx/audit"
	"sbx.example/sbx/broker/internal/arbiter"
	"sbx.example/sbx/broker/internal/child"
	"sbx.example/sbx/broker/internal/control"
	"sbx.example/sbx/broker/internal/gate"
	"sbx.example/sbx/broker/internal/gate/askfs"
	"sbx.example/sbx/broker/internal/gate/fuse"
	"sbx.example/sbx/broker/internal/host"
	"sbx.example/sbx/broker/internal/launch"
	"sbx.example/sbx/broker/internal/mediator"
	"sbx.example/sbx/broker/internal/planner"
	"sbx.example/sbx/broker/internal/prompt"
	"sbx.example/sbx/broker/internal/request"
	"sbx.example/sbx/broker/internal/rules"
	"sbx.example/sbx/broker/plan"
)

// Asks says whether the settings have what the words hide asked about (bwrap.ask).
func (w *Words) Asks() bool { return w.settings.Bwrap.Ask }

// Enforces says whether sbx's own secrets and guard hold under the words (bwrap.enforce).
func (w *Words) Enforces() bool { return w.settings.Bwrap.Enforce }

// Askable is bwrap.Asks'.
func (w *Words) Askable() error { return gate.Askable() }

// Unaskable is bwrap.Asks'.
func (w *Words) Unaskable(why string) {
	w.warn("what the words hide is not asked about (bwrap.ask): " + why)
}

// Covered is bwrap.Asks'.
func (w *Words) Covered() []string {
	out := w.own()
	root, err := controlRoot(w.env, w.settings.Layers.Vars.Home)
	if err == nil && !slices.ContainsFunc(out, func(dir string) bool { return host.Within(root, dir) }) {
		out = append(out, root)
	}
	return out
}

// ServeAsked is bwrap.Asks'.
func (w *Words) ServeAsked(c *child.Child, p *plan.Plan, read, write []string, record arbiter.Recorder, sid string,
	places []askfs.Place, fd int) error {
	// Nobody of the same user can attach to this process, and answer by it.
	err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0)
	if err == nil {
		err = w.askBy(write, record, sid)
	}
	if err != nil {
		unix.Close(fd)
		return err
	}
	info := control.Info{SID: sid, PID: os.Getpid(), Init: c.PID, Started: time.Now(), Mode: "dynamic",
		Prompt:  string(w.asking.mode),
		Profile: "bwrap", Cwd: p.Process.Dir, Argv: p.Process.Argv}
	w.engine = &gate.Asked{Arbiter: w.asking.arb, First: func() error { return w.openSocket(info) },
		Outside: func(pid uint32) uint32 { return host.Outside(c.PID, pid) },
		Failed:  func(err error) { w.Unaskable(err.Error()) },
		Never: func() ([]string, *request.NameGate, error) {
			if !w.Enforces() {
				if _, err := w.Hidden(read, write); err != nil {
					return nil, nil, err
				}
			}
			return append(slices.Clone(w.hidden), w.Covered()...), request.NewNameGate(w.in), nil
		}}
	w.asking.engine = w.engine
	return w.engine.Serve(fd, askfs.Options{Places: places, Ready: child.AskReady,
		Log:   log.New(mediator.Warner(w.warn), "", 0),
		Owner: fuse.Owner{Uid: p.Identity.InsideUID, Gid: p.Identity.InsideGID}})
}

// askBy makes who decides. Rules are those from before the program began, which may be able to write new ones.
func (w *Words) askBy(write []string, record arbiter.Recorder, sid string) error {
	in := &planner.Input{Facts: host.Who(w.env), Project: w.settings.Vars.Project}
	for _, p := range write {
		in.Grants = append(in.Grants, planner.Grant{Path: p, Mode: planner.Write})
	}
	mode, err := prompt.ParseMode(w.settings.Sandbox.Prompt)
	if err != nil {
		return err
	}
	b := &Broker{Env: w.env, Std: w.std, Warn: w.warn,
		Note: func(s string) { _, _ = w.std[2].WriteString(s) }}
	a := &approvals{b: b, r: &run{}, cfg: w.settings, in: in, mode: mode, svc: &service{}}
	// The standard error is the program's, but a person who reads it there is to know why it waits.
	a.r.Quiet, in.TTY = !a.isRead(), launch.HasTerminal(b.Std)
	a.rules = &rules.Files{Sources: request.Sources(w.env, in.Facts, ""), Settings: w.settings,
		Labels: labels(w.settings, in)}
	a.rules.Env.NoPrompt, a.rules.Env.Unasked = prompt.Unasked(mode, false, w.settings.Sandbox.PromptCommand != "")
	o := a.arbitrated(record, sid)
	if o.Env, _, err = a.rules.Fresh(); err != nil {
		return err
	}
	o.Fresh, o.Contact = nil, nil
	o.Labelled = func() error { return errors.New("nothing holds what has a label under bubblewrap's words") }
	a.arb = arbiter.New(o)
	w.asking = a
	return nil
}

// openSocket makes the socket over which sbx approve and sbx watch reach the questions. Nobody inside does: it is in
// another user namespace.
func (w *Words) openSocket(info control.Info) error {
	a := w.asking
	root, err := controlRoot(w.env, a.in.Facts.Home)
	if err == nil {
		queue := a.arb.Queue()
		a.server, err = control.Listen(root, info, control.Handlers{Pending: queue.Pending, Answer: queue.Answer,
			Undo: queue.UndoAnswer, Revoke: a.revoke}, control.Options{SharedPID: true})
	}
	if err != nil {
		a.server = nil
		w.Unaskable(fmt.Sprintf("making the socket over which sbx approve answers: %v", err))
		return err
	}
	go func() { _ = a.server.Serve() }()
	return nil
}

// Lost is bwrap.Asks'.
func (w *Words) Lost() []audit.Event {
	if w.engine != nil {
		w.engine.End()
	}
	if w.asking != nil && w.asking.server != nil {
		w.asking.server.Close()
	}
	if w.asking != nil {
		w.asking.teller.end()
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	lost := w.lost
	w.lost = nil
	return lost
}

package cli

import (
	"cmp"
	"fmt"
	"os"
	"strings"

	"sbx.example/sbx/broker/internal/bwrapline"
	"sbx.example/sbx/broker/internal/command"
	"sbx.example/sbx/broker/internal/host"
	"sbx.example/sbx/broker/internal/launch"
	"sbx.example/sbx/broker/internal/live"
	"sbx.example/sbx/broker/internal/planner"
	"sbx.example/sbx/broker/internal/program"
	"sbx.example/sbx/broker/internal/quoting"
	"sbx.example/sbx/broker/internal/request"
	"sbx.example/sbx/broker/plan"
)

// runNew runs argv in a new sandbox. args is the line as it was typed.
func (t *term) runNew(r *request.Request, argv, args []string) int {
	r.Argv, r.Settled = argv, t.settled
	if err := r.Misread(argv); err != nil {
		return t.fail(err)
	}
	if err := r.OnlyStatic(); err != nil {
		return t.fail(err)
	}
	if r.Seatbelt && r.DryRun {
		return t.dryPlace(*r, "/bin/sh")
	} else if r.Seatbelt {
		return t.fail(wrong("--backend seatbelt: seatbelt is the sandbox of macOS, and this is Linux",
			"leave the option out, or add --dry-run to see what a Mac would hold the program by"))
	}
	if r.Detach && !r.DryRun {
		return t.detach(r, args)
	}
	if r.UnlessSandboxed && !r.DryRun && live.InSession() {
		return t.become(argv)
	}
	t.askShellFiles(r)
	return t.run(t.broker(), *r)
}

// become executes a command in this process's place, with what the caller's environment says.
func (t *term) become(argv []string) int {
	t.early.Abandon()
	t.early.End()
	if len(argv) == 0 {
		argv = []string{cmp.Or(host.Lookup(t.caller, "SHELL"), "/bin/sh")}
	}
	cwd, err := os.Getwd()
	if err != nil {
		return t.fail(err)
	}
	exe, err := planner.LookPath(&planner.Input{Argv: argv, Env: t.caller, FS: host.FS{}}, cwd)
	if err == nil {
		err = &launch.ExecError{Status: 126, Path: exe, Err: program.Become(exe, argv, t.caller)}
	}
	return t.fail(err)
}

// broker is this process as the one that runs a session.
func (t *term) broker() *live.Broker {
	return &live.Broker{Env: t.Env, Std: t.Std, Early: t.early, Fault: t.before.Fault, Signals: t.signals,
		Sudo: askForSudo, Warn: t.Warn, Note: t.Note, Notices: t.Notices, Until: t.Until,
		Login: t.askLogin}
}

// run runs the request and says what came of it.
func (t *term) run(b *live.Broker, q request.Request) int {
	out, err := b.Run(q)
	t.Guest = true
	switch {
	case err != nil:
		return t.fail(err)
	case out.Plan != nil:
		t.dryRun(q, out)
		return 0
	case out.Report == nil:
		return out.Status
	}
	if q.JSON {
		t.NoteJSON(out.Report)
	} else if !q.Quiet {
		for _, line := range out.Report.Lines {
			t.warn(line)
		}
	}
	if out.TimedOut && !q.Quiet {
		t.warn(fmt.Sprintf("timed out after %v: everything in the sandbox was ended", out.Timeout))
	}
	if q.ExitBlocked && out.Status != 0 && out.Report.Refused() {
		return exitBlocked
	}
	return out.Status
}

// exitBlocked is the status of a program that failed after something was refused to it, where that was asked for.
const exitBlocked = 123

func (t *term) dryRun(q request.Request, out live.Outcome) {
	if q.JSON {
		t.print(dryRunJSON(out.Plan, out.Losses))
		return
	}
	if q.Verbose {
		t.Say(out.Plan.Text())
	} else {
		t.Say(fmt.Sprintf("%-11s %s\n", "profile", out.About) + out.Plan.Brief(out.Asks))
	}
	if p := out.Plan; p.Bwrap != nil {
		words := bwrapline.Alone(p, "bwrap", p.Bwrap)
		for i, w := range words {
			words[i] = quoting.Shell(w)
		}
		t.Say("command    " + strings.Join(words, " ") + "\n")
		t.Say("           (typed, it does what bwrap does alone; sbx adds limits, Landlock, the filter, a terminal and " +
			"the record)\n")
	}
	for _, l := range out.Losses {
		t.Say("loss       " + l.String() + "\n")
	}
}

// dryRunJSON is the answer to --dry-run --json: {"plan": …, "losses": […]}.
func dryRunJSON(p *plan.Plan, losses []planner.Loss) string {
	if losses == nil {
		losses = []planner.Loss{}
	}
	return command.Encode(struct {
		Plan   *plan.Plan     `json:"plan"`
		Losses []planner.Loss `json:"losses"`
	}{p, losses})
}

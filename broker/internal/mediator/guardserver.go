//go:build linux

package mediator

import (
	"errors"
	"log"
	"path"
	"strings"

	"golang.org/x/sys/unix"

	"sbx.example/sbx/broker/internal/child"
	"sbx.example/sbx/broker/internal/decide"
	"sbx.example/sbx/broker/internal/gate"
	"sbx.example/sbx/broker/internal/gate/gatefs"
	"sbx.example/sbx/broker/internal/gate/grants"
	"sbx.example/sbx/broker/internal/gate/served"
	"sbx.example/sbx/broker/internal/guard"
	"sbx.example/sbx/broker/internal/host"
	"sbx.example/sbx/broker/internal/planner"
	"sbx.example/sbx/broker/internal/policy"
	"sbx.example/sbx/broker/internal/program"
	"sbx.example/sbx/broker/internal/quoting"
	"sbx.example/sbx/broker/internal/report"
	"sbx.example/sbx/broker/internal/secrets"
	"sbx.example/sbx/broker/plan"
)

// Server returns the function that serves the guarded directories of the plan.
func (md *Mediator) Server() func(*child.Child, *plan.Mount, int) error {
	in, p := md.in, md.plan
	return func(c *child.Child, m *plan.Mount, fd int) error {
		top, place, err := md.guardedAt(m.Target)
		if err != nil {
			return err
		}
		tree := served.Tree{Dirs: []served.Dir{{Path: "/", Host: m.Source, Kind: served.Guarded, Zone: place}}}
		o := md.Guarding(c.PID, m.Source, top)
		o.Owner, o.Root = gatefs.Owner{UID: in.Facts.UID, GID: in.Facts.GID}, m.Source
		o.Repeat, o.Covered, o.Notifying = md.changes.in(m.Target), covered(p, m.Target), md.Serves(m.Target)
		o.Before = md.before(in.Facts.UID, in.Facts.GID)
		s, err := gatefs.New(fd, tree, o)
		if err != nil {
			return err
		}
		md.servers.add(m.Target, s)
		go s.Serve()
		return nil
	}
}

// Guarding is what serves a directory of the host's, which was granted as a part of top, as a project is served. Init
// is the sandbox's process 1.
func (md *Mediator) Guarding(init int, dir, top string) gatefs.Options {
	return gatefs.Options{
		Granted: guard.Granted{Top: top, GitDir: md.in.GitDir},
		Secrets: secrets.New(host.FS{}, md.in.Own, md.in.GitDir),
		Session: &md.session,
		Guard:   guardPolicy{md, dir, top},
		Log:     log.New(Warner(md.warn), "", 0),
		Refused: func(r grants.Request) {
			if md.looked.Add(1) <= maxLooked {
				r.PID = host.Outside(init, r.PID)
			} else {
				r.PID = 0
			}
			md.refused(path.Join(dir, r.Path), r)
		},
	}
}

// guardPolicy is gatefs.GuardPolicy of the directory dir, which was granted as a part of top.
type guardPolicy struct {
	md       *Mediator
	dir, top string
}

func (g guardPolicy) Linked(outside string) bool { return g.md.linked(outside, g.top) }

func (g guardPolicy) Check(p string, what guard.Action, old, next []byte) error {
	return g.md.contents(path.Join(g.dir, p), what, old, next)
}

func (g guardPolicy) Made(p string, text []byte) bool { return g.md.made(path.Join(g.dir, p), text) }

// maxLooked bounds how often a session's processes are looked through for one that the guard refused something.
const maxLooked = 256

// refused records that the guard of a project kept a secret or a guarded name.
func (md *Mediator) refused(p string, r grants.Request) {
	access, what := "write", " (guarded)"
	if r.Hidden {
		access, what = "read", " (secret)"
	}
	if r.Kept {
		what = " (secret)"
	}
	outside, reason := settingOutside(r.Why)
	exe, _ := program.Links(int(r.PID))
	silent := r.PID != 0 && r.Empty && md.Placeholder != nil && md.Placeholder(p, int(r.PID), exe)
	if silent {
		md.looked.Add(-1)
	}
	if md.asker == nil || !md.asker.Decides() {
		hint := "sbx why " + quoting.Shell(p)
		if r.Kept {
			hint = report.ErrKept.Error() + ": " + hint
		}
		if outside != "" {
			hint = report.OutsideOnly + outside
		}
		n := report.Refusal{Op: access, Path: p, PID: int(r.PID), Reason: strings.TrimSpace(what), Advice: hint,
			Text: access + " " + quoting.Quote(p) + what + by(r.PID) + ": " + hint, Exe: exe, Silent: silent}
		md.refusals.Add(n)
		return
	}
	q := decide.Ask{PID: int(r.PID), Exe: exe, Op: access, Kind: policy.KindPath, Path: p}
	if q.PID != 0 {
		_, q.Cwd = program.Links(q.PID)
	}
	if r.Hidden {
		md.asker.Hidden(q, decide.Verdict{Errno: int(unix.ENOENT), Life: decide.Forever, Reason: gate.HiddenReason +
			"environment files and keys do not exist inside a project"})
		return
	}
	reason = gate.ErrGuarded.Error() + reason
	if r.Kept {
		md.asker.Refused(q, decide.Verdict{Errno: int(unix.EACCES), Life: decide.Forever, Reason: report.ErrKept.Error()})
		return
	}
	md.asker.Refused(q, decide.Verdict{Errno: int(unix.EROFS), Life: decide.Forever, Reason: reason, Outside: outside,
		Silent: silent})
}

// settingOutside is the command that makes a refused change of a repository's configuration, "" if there is none, and
// what to add to the reason of the refusal.
func settingOutside(why error) (command, reason string) {
	var e *guard.ConfigError
	if !errors.As(why, &e) {
		return "", ""
	}
	var words []string
	for _, w := range e.Command() {
		words = append(words, quoting.Shell(w))
	}
	return strings.Join(words, " "), "; " + e.Error()
}

func by(pid uint32) string {
	if pid == 0 {
		return ""
	}
	return " by " + report.Caller(pid)
}

// inProject is the place in the project of a file of a guarded directory; its whole path if it is not there.
func inProject(in *planner.Input, p string) string {
	if in.Project == "" || !host.Within(p, in.Project) {
		return p
	}
	return strings.TrimPrefix(strings.TrimPrefix(p, in.Project), "/")
}

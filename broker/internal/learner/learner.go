//go:build linux

// Package learner collects what a session with --learn sees, and writes the policy that package learn makes of it. It
// must not decide anything: the session does. Package live hands it what was settled.
package learner

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"sbx.example/sbx/broker/internal/arbiter"
	"sbx.example/sbx/broker/internal/decide"
	"sbx.example/sbx/broker/internal/host"
	"sbx.example/sbx/broker/internal/learn"
	"sbx.example/sbx/broker/internal/planner"
	"sbx.example/sbx/broker/internal/policy"
	"sbx.example/sbx/broker/internal/quoting"
	"sbx.example/sbx/broker/internal/request"
)

// maxLearned bounds the accesses that are remembered; a policy of so many is no policy.
const maxLearned = 20000

// Learner collects what a run saw; nil is that of one that does not learn.
type Learner struct {
	mu   sync.Mutex
	seen map[learn.Access]bool
	full bool
	file *os.File
	name string
	home string
}

// New opens the file that the policy is to be written to. It must not exist: a policy is not overwritten. Without a
// name nothing is learned.
func New(name string, s request.Settings) (*Learner, error) {
	if name == "" {
		return nil, nil
	}
	if s.Sandbox.Prompt != "allow" || s.Sandbox.Mode != "dynamic" {
		for _, key := range []string{"sandbox.prompt", "sandbox.mode"} {
			if o, locked := s.Locked[key]; locked {
				return nil, &planner.Refusal{What: "--learn is not allowed here: " + o.String() + " has made " + key + " final",
					Hint: "ask the administrator of this machine"}
			}
		}
		return nil, &planner.Refusal{What: "--learn cannot be combined with another --mode or --prompt"}
	}
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0o600)
	if errors.Is(err, os.ErrExist) {
		return nil, &planner.Refusal{What: "--learn " + quoting.Quote(name) + " exists already",
			Hint: "name a new file; sbx policy diff compares two"}
	}
	if err != nil {
		return nil, &planner.Refusal{What: "--learn " + quoting.Quote(name), Err: err,
			Hint: "name a new file in a directory that you may write"}
	}
	return &Learner{seen: map[learn.Access]bool{}, file: f, name: name, home: s.Vars.Home}, nil
}

// Note takes in one settled access.
func (l *Learner) Note(ev arbiter.Event) {
	q, v := ev.Ask, ev.Verdict
	refused := v.Decision != decide.Allow
	if v.Silent || v.Secret || q.Op == decide.Decoy ||
		v.Rule != "" && v.Rule != learn.WriteRule || refused && v.Reason != learn.NotWritten {
		return
	}
	a := learn.Access{Kind: q.Kind, Path: q.Path, Host: q.Host, Port: q.Port, Access: policy.AccessOf(q.Op), Exe: q.Exe,
		Refused: refused}
	if a.Kind == "" || a.Kind == policy.KindExec {
		a.Kind = policy.KindPath
	}
	if a.Kind == policy.KindHost || a.Kind == policy.KindSocket {
		a.Access = policy.Connect
	}
	if a.Access == policy.Exec || a.Access == policy.List {
		a.Access = policy.Read // to be run a file is read; a directory is shown with what is in it while a session learns
	}
	a.Tree = slices.Contains(q.Flags, "dir") && a.Kind == policy.KindPath // granted, it is mounted as it is
	list := []learn.Access{a}
	if q.Target != "" && q.Target != q.Path && a.Kind == policy.KindPath {
		b := a
		b.Path = q.Target
		list = append(list, b)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, x := range list {
		if dir, whole := ComesBack(x.Path, l.home, q.PID); x.Path != "" && !whole {
			x.Base = dir
		}
		if len(l.seen) < maxLearned {
			l.seen[x] = true
		} else {
			l.full = true
		}
	}
}

// ComesBack is learn.ComesBack for a process that is there now.
func ComesBack(p, home string, pid int) (dir string, whole bool) {
	_, inside, _ := host.Lineage(uint32(pid))
	return learn.ComesBack(p, home, pid, inside)
}

// Finish writes the policy of what words ran, and returns what to do with it.
func (l *Learner) Finish(words []string, vars policy.Vars) (said []string, err error) {
	if l == nil {
		return nil, nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	var list []learn.Access
	for a := range l.seen {
		list = append(list, a)
	}
	command := make([]string, len(words))
	for i, w := range words {
		command[i] = quoting.Shell(w)
	}
	text, rules := learn.Policy(list, learn.Options{Vars: vars, Command: command, Now: time.Now(),
		There: host.Exists})
	_, err = l.file.WriteString(text)
	if err = errors.Join(err, l.file.Sync(), l.file.Close()); err != nil {
		return nil, fmt.Errorf("writing %s: %w", quoting.Quote(l.name), err)
	}
	said = []string{fmt.Sprintf("learned %s: read %s, then sbx policy import policy %s",
		quoting.Count(len(rules), "rule"), quoting.Quote(l.name), quoting.Shell(l.name))}
	if l.full {
		said = append(said, "the program accessed more than could be remembered; the policy is not complete")
	}
	return said, nil
}

// Drop takes the empty file away when nothing was run.
func (l *Learner) Drop() {
	if l != nil {
		l.file.Close()
		os.Remove(l.name)
	}
}

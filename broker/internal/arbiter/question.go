package arbiter

import (
	"slices"

	"sbx.example/sbx/broker/internal/decide"
	"sbx.example/sbx/broker/internal/policy"
)

// questionOf words an access for a human. Operations are named by the right that is asked for: two accesses that make
// one question must need the same right, because one answer settles both.
func questionOf(a decide.Ask, v decide.Verdict, env decide.Env) decide.Question {
	q := decide.Question{PID: a.PID, Inside: a.Inside, Exe: a.Exe, Cwd: a.Cwd, Op: a.Op, Path: a.Path,
		Target: a.Target, Why: v.Reason,
		Dir: slices.Contains(a.Flags, "dir"), Whole: slices.Contains(a.Flags, decide.WholeTree), Walk: a.Walk,
		Secret: v.Secret, Labels: v.Labels, Others: v.Others, Acts: v.Acts,
		Everyone: slices.Contains(a.Flags, decide.Mounted)}
	if v.Rule != "" {
		q.Why += " (" + v.Rule + ", " + v.Origin + ")"
	}
	switch {
	case a.Kind == policy.KindHost:
		q.Host, q.Port, q.Path, q.Op = a.Host, a.Port, "", "connect"
		if a.Op == decide.Lookup {
			q.Op = a.Op
			q.Why += "; looked up, so the port is a guess: another is another question"
		}
	case a.Kind == policy.KindSocket || slices.Contains(a.Flags, "socket"):
		if q.Op != decide.Call && q.Op != decide.CallOnHost {
			q.Op = "connect"
		}
	case a.Kind == policy.KindExec:
		q.Op = "exec"
	case a.Op == decide.Decoy:
	default:
		switch policy.AccessOf(a.Op) {
		case policy.Exec:
			q.Op = "exec"
		case policy.Write, policy.Connect:
			q.Op = "write"
		}
	}
	env.Offer(&q)
	return q
}

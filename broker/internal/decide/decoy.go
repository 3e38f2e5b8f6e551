package decide

import (
	"syscall"

	"sbx.example/sbx/broker/internal/policy"
)

// Decoy is the operation of an Ask about a session that stands still because of a decoy: whether it goes on. No rule,
// no earlier answer and no --prompt allow says so.
const Decoy = "decoy"

// DecoyAsk asks whether a session goes on after what a program did with the decoy at p.
func DecoyAsk(pid int, p, did string) Ask {
	return Ask{PID: pid, Op: Decoy, Kind: policy.KindPath, Path: p, Did: did}
}

// decoy asks, or refuses where there is nobody to be asked.
func (env Env) decoy(a Ask) Verdict {
	env.Unasked = Deny
	return env.unanswered(a, Verdict{Decision: AskHuman, Scope: File, Errno: int(syscall.EACCES), Path: a.Path,
		Reason: a.Did + "; a decoy is of use only to who looks for secrets"})
}

// alone says whether an operation is asked about each time: it is answered for this once, or with no.
func alone(op string) bool { return op == CallOnHost || op == Decoy }

// Alone says whether a question is answered for this once, or with no.
func (q *Question) Alone() bool { return alone(q.Op) }

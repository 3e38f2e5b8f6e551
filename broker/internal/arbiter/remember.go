package arbiter

import (
	"time"

	"sbx.example/sbx/broker/internal/decide"
	"sbx.example/sbx/broker/internal/policy"
	"sbx.example/sbx/broker/internal/prompt"
)

const (
	// onceFor is how long an answer that holds once stands for the rest of what one look at a file takes: programs ask for
	// its attributes, open it and ask for its attributes again.
	onceFor = 2 * time.Second
	// silentFor is how long a question that nobody answered is not put again for the same process and object.
	silentFor = time.Minute
	// maxOnce and maxSeen bound the tables whatever a program does.
	maxOnce = 1024
	maxSeen = 4096
	// walkFor is how long a refusal stands for the rest of what a process goes through.
	walkFor = 10 * time.Minute
)

// onceEntry is an answer of a moment ago.
type onceEntry struct {
	verdict decide.Verdict
	until   time.Time
	opened  bool // the one open that it allowed has been
}

// onceTable is keyed by process and object.
type onceTable map[onceKey]onceEntry

type onceKey struct {
	process process
	object  string
}

// process is one process, and not another that has its number later.
type process struct {
	pid   int
	start uint64
}

func (a *Arbiter) processOf(tid int) process {
	if a.opt.Process == nil {
		return process{pid: tid}
	}
	pid, start := a.opt.Process(tid)
	return process{pid, start}
}

func (a *Arbiter) onceKey(q decide.Ask) onceKey { return onceKey{a.processOf(q.PID), object(q)} }

// walkKey is what of a walk was refused: to look at things, or to write them.
type walkKey struct {
	process process
	dir     string
	writes  bool
}

func (a *Arbiter) walkKey(q decide.Ask) walkKey {
	return walkKey{a.processOf(q.PID), q.Walk, policy.AccessOf(q.Op) == policy.Write}
}

// refuseWalk makes a no at something that a process goes through hold for the rest of it.
func (a *Arbiter) refuseWalk(q decide.Ask, now time.Time) {
	if q.Walk == "" {
		return
	}
	k := a.walkKey(q)
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.walks) >= maxOnce || a.walks == nil {
		a.walks = map[walkKey]time.Time{}
	}
	a.walks[k] = now.Add(walkFor)
}

// walkRefused says whether an access belongs to a walk that was refused.
func (a *Arbiter) walkRefused(q decide.Ask, now time.Time) bool {
	a.mu.Lock()
	none := len(a.walks) == 0
	a.mu.Unlock()
	if none || q.Walk == "" {
		return false
	}
	k := a.walkKey(q)
	a.mu.Lock()
	defer a.mu.Unlock()
	return now.Before(a.walks[k])
}

// looks says whether an operation only looks at what an open would give.
func looks(op string) bool {
	switch op {
	case "stat", "lstat", "access", "readlink", "getattr", "lookup", "getxattr", "statfs":
		return true
	}
	return false
}

// noneRemembered spares the look at who asks while nothing is remembered.
func (a *Arbiter) noneRemembered() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return len(a.once) == 0
}

// remember keeps an answer that holds once.
func (a *Arbiter) remember(k onceKey, op string, v decide.Verdict, now time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.once) >= maxOnce {
		for k, e := range a.once {
			if !now.Before(e.until) {
				delete(a.once, k)
			}
		}
		if len(a.once) >= maxOnce {
			clear(a.once)
		}
	}
	if a.once == nil {
		a.once = onceTable{}
	}
	a.once[k] = onceEntry{verdict: v, until: now.Add(onceFor), opened: !looks(op)}
}

// rememberSilence keeps the refusal of a question that nobody answered.
func (a *Arbiter) rememberSilence(k onceKey, v decide.Verdict, by string, now time.Time) {
	if by != prompt.ByTimeout {
		return
	}
	a.remember(k, "", v, now)
	a.mu.Lock()
	defer a.mu.Unlock()
	if e, ok := a.once[k]; ok {
		e.until = now.Add(silentFor)
		a.once[k] = e
	}
}

// recalled finds what stands for an access from a moment ago. The kernel looks at a program's attributes before it runs
// it, so that a question about reading it comes first: who may read it this once may run it instead.
func (a *Arbiter) recalled(q decide.Ask, now time.Time) (v decide.Verdict, ok bool) {
	if a.noneRemembered() {
		return v, false
	}
	if v, ok = a.recall(a.onceKey(q), q.Op, now); ok || q.Kind != policy.KindExec {
		return v, ok
	}
	q.Kind, q.Op = policy.KindPath, "read"
	if v, ok = a.recall(a.onceKey(q), q.Op, now); v.Decision != decide.Allow {
		return decide.Verdict{}, false
	}
	return v, ok
}

// recall finds the answer that the same process was given for the same object a moment ago. A yes is good for one open
// and the looks around it, a no for every repetition.
func (a *Arbiter) recall(k onceKey, op string, now time.Time) (decide.Verdict, bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	e, ok := a.once[k]
	switch {
	case !ok:
		return decide.Verdict{}, false
	case !now.Before(e.until):
		delete(a.once, k)
		return decide.Verdict{}, false
	case e.verdict.Decision != decide.Allow || looks(op):
		return e.verdict, true
	case e.opened:
		return decide.Verdict{}, false
	}
	e.opened = true
	a.once[k] = e
	return e.verdict, true
}

// seenTable holds what was settled already, so that the record has each object once for each program and not once for
// each access.
type seenTable map[string]struct{}

func (s *seenTable) clear() { *s = nil }

// repeated says whether the same was settled in the same way before, and remembers it.
func (a *Arbiter) repeated(q decide.Ask, v decide.Verdict) bool {
	_, d := outcome(v)
	k := d + "\x00" + q.Exe + "\x00" + object(q)
	a.mu.Lock()
	defer a.mu.Unlock()
	if _, ok := a.seen[k]; ok {
		return true
	}
	if len(a.seen) >= maxSeen || a.seen == nil {
		a.seen = make(seenTable)
	}
	a.seen[k] = struct{}{}
	return false
}

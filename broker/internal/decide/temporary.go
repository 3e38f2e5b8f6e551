package decide

import (
	"sbx.example/sbx/broker/internal/policy"
	"sbx.example/sbx/broker/plan"
)

// TemporaryOf is how the reason of what is allowed as a temporary name begins.
const TemporaryOf = "a temporary name of "

// given is what the run was started with: what the mounts give, and what replaces a file there.
func (env Env) given(a Ask) (Verdict, bool) {
	switch {
	case a.Kind == policy.KindHost || a.Kind == policy.KindSocket:
		return Verdict{}, false
	case a.Kind == policy.KindPath && a.access() != policy.Exec && env.Files != nil && env.Files(a.Path):
		return Verdict{Decision: Allow, Scope: File, Life: Session, Reason: "granted to this run", Path: a.Path}, true
	}
	return env.temporary(a)
}

// temporary allows what a names as a temporary name of the first file in a.Of that may be written without a question.
// It does not where somebody acts upon one of the two names outside: the temporary one is not what was granted.
func (env Env) temporary(a Ask) (Verdict, bool) {
	if len(a.Of) == 0 || a.Kind != policy.KindPath || env.acts(a.Path) {
		return Verdict{}, false
	}
	for _, f := range a.Of {
		w := one(Ask{PID: a.PID, Exe: a.Exe, Op: "write", Kind: a.Kind, Path: f}, env)
		if w.Decision == Allow && !env.acts(f) {
			return Verdict{Decision: Allow, Scope: File, Life: LifeOnce, Path: a.Path, Rule: w.Rule, Origin: w.Origin,
				Reason: TemporaryOf + plan.Bytes(f).Quote() + ", which may be written"}, true
		}
	}
	return Verdict{}, false
}

func (env Env) acts(p string) bool { return env.Acts != nil && env.Acts(p) != "" }

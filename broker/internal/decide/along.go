package decide

import "sbx/broker/internal/policy"

// along says whether what lies in a.With, a directory that was allowed with its names, comes along with that answer: yes, unless a
// rule, an earlier refusal or a secret forbids it, or something wants it to be asked about by itself.
func along(a Ask, env Env) Verdict {
	// Somebody did answer, so only what forbids it counts.
	env.Static, env.NoPrompt = false, false
	with := a.With
	a.With = ""
	v := Decide(a, env)
	a = a.normal()
	if v.Decision != AskHuman || env.apart(a, with) {
		return v
	}
	return Verdict{Decision: Allow, Scope: File, Life: Session, Reason: "granted in this session", Path: a.name(), Whole: a.has("dir") && env.clean(a.Path, a.access())}
}

// apart says whether a is asked about for another reason than the directory it lies in.
func (env Env) apart(a Ask, with string) bool {
	for _, p := range env.Asks {
		if p.MatchTree(a.Path) && !p.MatchTree(with) {
			return true
		}
	}
	if env.Policy == nil {
		return false
	}
	r, ok := env.Policy(a.query(env.Now))
	if !ok {
		return false
	}
	above := Ask{Kind: policy.KindPath, Op: a.Op, Path: with}
	w, ok := env.Policy(above.query(env.Now))
	return !ok || w.String() != r.String() || w.Origin != r.Origin
}

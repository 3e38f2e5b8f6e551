package decide

import (
	"syscall"

	"sbx.example/sbx/broker/internal/policy"
)

// unsettled is what neither a rule nor an answer covers.
func (env Env) unsettled(a Ask, rule policy.Rule, ruled bool) Verdict {
	v := Verdict{Decision: AskHuman, Scope: File, Errno: int(syscall.EACCES), Reason: "not granted", Path: a.name()}
	if ruled {
		v = env.named(v, rule)
		v.Reason = reason(rule, "a rule asks")
	}
	if env.Acts != nil && a.access() == policy.Write {
		if v.Acts = env.Acts(a.Path); v.Acts == "" && a.Target != "" && a.Target != a.Path {
			v.Acts = env.Acts(a.Target)
		}
		if v.Acts != "" {
			v.Reason += "; it acts outside of the sandbox: " + v.Acts
		}
	}
	return env.unanswered(a, v)
}

// unanswered is a question where there is somebody to be asked, and else what is to be said instead.
func (env Env) unanswered(a Ask, v Verdict) Verdict {
	switch {
	case env.Static:
		v.Decision, v.Reason = Deny, v.Reason+"; static mode asks nobody"
	case env.NoPrompt && env.Unasked == Allow:
		v.Decision, v.Errno, v.Life = Allow, 0, Session
		v.Whole = a.has("dir") && env.clean(a.Path, a.access())
		v.Reason += "; --prompt allow"
	case env.NoPrompt:
		v.Decision, v.Reason = Deny, v.Reason+"; nobody is there to be asked"
	default:
		if g, ok := env.Grants.silenced(a.Exe, env.Now); ok {
			v.Decision, v.Life, v.Until = Deny, g.Life, g.Until
			v.Reason = "refused with everything that would be asked about"
			if g.Scope == Program {
				v.Reason = "refused with whatever else this program would ask about"
			}
		}
	}
	return v
}

package decide

import (
	"syscall"

	"sbx.example/sbx/broker/internal/policy"
)

// secret decides about a secret file of which somebody has said that it may be shown, or that it may be asked about.
// One that is not shown does not exist, whatever the reason: so it was before anybody asked.
func (env Env) secret(a Ask) Verdict {
	what := "it has the name of a secret"
	if h := env.hidden(a); h != nil {
		what = h.Reason
	}
	no := func(why string) Verdict {
		return Verdict{Errno: int(syscall.ENOENT), Life: LifeOnce, Secret: true, Path: a.Path,
			Reason: "hidden: " + what + "; " + why}
	}
	if a.access() != policy.Read || a.has("dir") {
		v, read := no("a secret is shown as a file to be read, and no more"), a
		read.Kind, read.Op, read.Flags = policy.KindPath, "read", nil
		if !a.has("dir") && env.secret(read).Decision == Allow { // it exists, then
			v.Errno = int(syscall.EACCES)
		}
		return v
	}
	rule, ruled := env.revealing(a)
	g, granted := env.Grants.Lookup(a, env.Now)
	switch {
	case ruled && rule.Decision == policy.Deny:
		return env.named(no(reason(rule, "denied by rule")), rule)
	case !env.Reveals.May(a.Path):
		v := no("the organisation lets no other secret be shown than fs.reveal lists")
		v.Origin = env.Reveals.Final.String()
		return v
	case granted && !g.Allow && !(ruled && rule.Final):
		return no("refused earlier in this session")
	case ruled && rule.Decision == policy.Reveal:
		v := env.named(env.shown(a, what, reason(rule, "by rule")), rule)
		if rule.Program != "" && !env.runs(a, rule.Program) {
			v = env.named(no("only "+rule.Program+" may have it"), rule)
		}
		return v
	case granted && g.Scope == Revealed:
		return env.shown(a, what, "granted in this session")
	case !env.Reveals.Asks[a.Path]:
		return no("no rule that shows it holds")
	}
	v := no("fs.reveal lets it be asked about")
	if _, silenced := env.Grants.silenced(a.Exe, env.Now); env.Static || env.NoPrompt || silenced {
		return no("nobody is there to be asked")
	}
	v.Decision, v.Scope, v.Reason = AskHuman, File, what
	return v
}

// revealing is the rule that decides about a secret: of those that show it to single programs, the asking one's.
func (env Env) revealing(a Ask) (policy.Rule, bool) {
	q := a.query(env.Now)
	rule, ruled := env.ruled(q)
	if ruled && rule.Program != "" {
		q.Runs = func(program string) bool { return env.runs(a, program) }
		if own, ok := env.ruled(q); ok && own.Decision == policy.Reveal && own.Origin.Scope == rule.Origin.Scope {
			return own, true
		}
	}
	return rule, ruled
}

func (env Env) runs(a Ask, program string) bool {
	return env.Runs != nil && env.Runs(a.PID, a.Exe, program)
}

// shown lets one access to a secret through. The next one is another program's perhaps, and is looked at again.
func (env Env) shown(a Ask, what, why string) Verdict {
	return Verdict{Decision: Allow, Scope: File, Life: LifeOnce, Secret: true, Path: a.Path,
		Reason: "secret shown (" + what + "): " + why}
}

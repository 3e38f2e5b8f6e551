package decide

import (
	"strings"
	"syscall"
	"testing"

	"sbx.example/sbx/broker/internal/policy"
)

// Only a rule that says so, an answer that says so, or nothing at all: what is refused does not exist, and nobody is
// asked about a secret of which nobody has spoken.
func TestReveal(t *testing.T) {
	const p = "/home/u/.netrc"
	reveal := func(scope policy.Scope) policy.Rule {
		return rule(t, scope, policy.KindPath, p, policy.Read, policy.Reveal)
	}
	forProgram := func(program string) policy.Rule {
		r, err := policy.NewRule(policy.Rule{Kind: policy.KindPath, Pattern: p, Decision: policy.Reveal, Program: program,
			Origin: policy.Origin{Scope: policy.ScopeUser}}, vars())
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	forCat, forHead := forProgram("/bin/cat"), forProgram("/bin/head")
	runs := func(own string) func(*Env) {
		return func(e *Env) { e.Runs = func(_ int, _, program string) bool { return program == own } }
	}
	asks := func(e *Env) { e.Reveals.Asks = map[string]bool{p: true} }
	answered := func(g Grant) func(*Env) {
		g.Kind, g.Name, g.Access, g.Life = policy.KindPath, p, policy.Read, Session
		return func(e *Env) { asks(e); e.Grants.Add(g) }
	}
	exec := Ask{Op: "exec", Kind: policy.KindExec, Path: p}
	write := Ask{Op: "write", Kind: policy.KindPath, Path: p}
	dir := Ask{Op: "list", Kind: policy.KindPath, Path: p, Flags: []string{"dir"}}
	for name, c := range map[string]struct {
		ask   Ask
		rules []policy.Rule
		edit  func(*Env)
		want  Decision
		errno syscall.Errno
		why   string
	}{
		"nobody has spoken of it": {ask: read(p), want: Deny, errno: syscall.ENOENT, why: "passwords in clear text"},
		"an allow is no reveal": {ask: read(p), rules: []policy.Rule{rule(t, policy.ScopeUser, policy.KindPath, p,
			policy.Read, policy.Allow)}, want: Deny, errno: syscall.ENOENT, why: "passwords"},
		"a rule":         {ask: read(p), rules: []policy.Rule{reveal(policy.ScopeUser)}, want: Allow, why: "secret shown"},
		"the org's rule": {ask: read(p), rules: []policy.Rule{reveal(policy.ScopeOrg)}, want: Allow, why: "secret shown"},
		"in static mode": {ask: read(p), rules: []policy.Rule{reveal(policy.ScopeUser)},
			edit: func(e *Env) { e.Static = true }, want: Allow, why: "secret shown"},
		"a project's": {ask: read(p), rules: []policy.Rule{reveal(policy.ScopeProject)}, want: Deny,
			errno: syscall.ENOENT, why: "passwords"},
		"the org's no": {ask: read(p), rules: []policy.Rule{reveal(policy.ScopeUser), rule(t, policy.ScopeOrg,
			policy.KindPath, "/home/u/.*", policy.Read, policy.Deny)}, want: Deny, errno: syscall.ENOENT, why: "denied by rule"},
		"the org's last word": {ask: read(p), rules: []policy.Rule{reveal(policy.ScopeUser)}, edit: func(e *Env) {
			e.Reveals.Final = policy.Origin{Scope: policy.ScopeOrg, File: "config.toml"}
		}, want: Deny, errno: syscall.ENOENT, why: "the organisation lets no other"},
		"writing": {ask: write, rules: []policy.Rule{reveal(policy.ScopeUser)},
			want: Deny, errno: syscall.EACCES, why: "to be read"},
		"running": {ask: exec, rules: []policy.Rule{reveal(policy.ScopeUser)},
			want: Deny, errno: syscall.EACCES, why: "to be read"},
		"directory": {ask: dir, rules: []policy.Rule{reveal(policy.ScopeUser)},
			want: Deny, errno: syscall.ENOENT, why: "as a file"},
		"for a program": {ask: read(p), rules: []policy.Rule{forCat}, edit: runs("/bin/cat"), want: Allow,
			why: "secret shown"},
		"for another": {ask: read(p), rules: []policy.Rule{forCat}, edit: runs("/bin/head"), want: Deny,
			errno: syscall.ENOENT, why: "only /bin/cat"},
		"for two programs": {ask: read(p), rules: []policy.Rule{forCat, forHead}, edit: runs("/bin/head"), want: Allow,
			why: "secret shown"},
		"for neither of two": {ask: read(p), rules: []policy.Rule{forCat, forHead}, edit: runs("/bin/tail"), want: Deny,
			errno: syscall.ENOENT, why: "only /bin/cat"},
		"for all and one": {ask: read(p), rules: []policy.Rule{forCat, reveal(policy.ScopeUser)}, edit: runs("/bin/tail"),
			want: Allow, why: "secret shown"},
		"for one where the org's is for all": {ask: read(p), rules: []policy.Rule{reveal(policy.ScopeOrg), forCat},
			edit: runs("/bin/tail"), want: Deny, errno: syscall.ENOENT, why: "only /bin/cat"},
		"nobody tells programs apart": {ask: read(p), rules: []policy.Rule{forCat}, want: Deny, errno: syscall.ENOENT,
			why: "only /bin/cat"},
		"asked about":    {ask: read(p), edit: asks, want: AskHuman, errno: syscall.ENOENT, why: "passwords"},
		"asked to write": {ask: write, edit: asks, want: Deny, errno: syscall.ENOENT, why: "to be read"},
		"nobody there": {ask: read(p), edit: func(e *Env) { asks(e); e.NoPrompt = true },
			want: Deny, errno: syscall.ENOENT, why: "nobody is there"},
		"yes to all": {ask: read(p), edit: func(e *Env) { asks(e); e.NoPrompt, e.Unasked = true, Allow },
			want: Deny, errno: syscall.ENOENT, why: "nobody is there"},
		"no to all": {ask: read(p), edit: func(e *Env) { asks(e); e.Grants.Add(Grant{Scope: Everything, Life: Session}) },
			want: Deny, errno: syscall.ENOENT, why: "nobody is there"},
		"shown by answer": {ask: read(p), edit: answered(Grant{Allow: true, Scope: Revealed}),
			want: Allow, why: "granted in this session"},
		"refused": {ask: read(p), edit: answered(Grant{Scope: File}),
			want: Deny, errno: syscall.ENOENT, why: "refused earlier"},
		"another's answer": {ask: read(p), edit: answered(Grant{Allow: true, Scope: File}),
			want: AskHuman, errno: syscall.ENOENT, why: "passwords"},
	} {
		t.Run(name, func(t *testing.T) {
			e := env(t, c.rules...)
			for _, r := range c.rules {
				if r.Decision == policy.Reveal && r.Origin.Scope != policy.ScopeProject {
					e.Reveals.Rules = map[string]bool{p: true}
				}
			}
			if c.edit != nil {
				c.edit(&e)
			}
			v := Decide(c.ask, e)
			if v.Decision != c.want || c.want != Allow && v.Errno != int(c.errno) || !strings.Contains(v.Reason, c.why) {
				t.Fatalf("got %v errno %d, %q", v.Decision, v.Errno, v.Reason)
			}
			if v.Decision == Allow && (v.Life != LifeOnce || v.Scope != File || v.Whole) {
				t.Errorf("it opens more than this access: %+v", v)
			}
		})
	}
}

// No answer shows a secret but the one whose scope says so, and none opens anything but the file.
func TestRevealAnswers(t *testing.T) {
	q := Question{Op: "read", Path: "/home/u/.netrc", Exe: "/bin/x", Secret: true}
	scopes := []Scope{"", Once, File, Dir, Tree, Walk, App, HostScope, Domain, Program, Everything, Revealed}
	shows := 0
	for _, s := range scopes {
		for _, l := range []Life{"", LifeOnce, Session, Hour, Forever} {
			for _, store := range []string{"", "user", "project", "org"} {
				c, err := Means(&q, Answer{Allow: true, Scope: s, Life: l, Persist: store}, now())
				if err != nil {
					continue
				}
				shows++
				if s != Revealed || store != "" || c.Answer.Life != Session && c.Answer.Life != Until || len(c.Covers) != 1 ||
					c.Covers[0].Name != q.Path || c.Covers[0].Scope != Revealed || c.Covers[0].Access != policy.Read {
					t.Errorf("%s %s %s: %+v", s, l, store, c)
				}
			}
		}
	}
	if shows != 3 { // for the session, by default or said, and for an hour
		t.Errorf("%d answers show it", shows)
	}
	if _, err := Means(&Question{Op: "read", Path: "/x"}, Answer{Allow: true, Scope: Revealed}, now()); err == nil {
		t.Error("what is no secret is revealed")
	}
	// a no holds: what does not exist now does not in a moment either
	c, err := Means(&q, Answer{}, now())
	if err != nil || len(c.Covers) != 1 || c.Covers[0].Allow || c.Answer.Life != Session {
		t.Errorf("%+v, %v", c, err)
	}
	e := env(t)
	e.Reveals.Asks = map[string]bool{q.Path: true}
	for _, a := range []Answer{{}, {Allow: true, Scope: Once, Life: LifeOnce}, {Allow: true, Scope: File, Life: Session}} {
		if v := a.Verdict(read(q.Path), e); v.Decision != Deny || v.Errno != int(syscall.ENOENT) {
			t.Errorf("%+v settles it as %v, errno %d", a, v.Decision, v.Errno)
		}
	}
	if q.Group() != "" {
		t.Error("it is asked about together with others")
	}
}

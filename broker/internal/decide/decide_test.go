package decide

import (
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"sbx.example/sbx/broker/internal/policy"
	"sbx.example/sbx/broker/internal/policy/peer"
)

func now() time.Time { return time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC) }

func vars() policy.Vars { return policy.Vars{Home: "/home/u", Project: "/home/u/proj"} }

func rule(t testing.TB, scope policy.Scope, kind policy.Kind, pattern string, a policy.Access,
	d policy.Decision) policy.Rule {
	t.Helper()
	r, err := policy.NewRule(policy.Rule{Kind: kind, Pattern: pattern, Access: a, Decision: d,
		Origin: policy.Origin{Scope: scope, File: "policy.toml", Line: 3}}, vars())
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// env is the moderate profile with the given rules.
func env(t testing.TB, rules ...policy.Rule) Env {
	t.Helper()
	e, err := policy.Merge(policy.Layers{Vars: vars()}, nil)
	if err != nil {
		t.Fatal(err)
	}
	s := policy.Store{}
	for _, r := range rules {
		s = s.With(r.Origin.Scope, r)
	}
	return Env{Policy: s.Match, Restricts: s.Restricts, Hidden: e.Concealed(), Asks: e.Asks(), Grants: NewGrants(),
		Now: now()}
}

func read(path string) Ask { return Ask{ID: "1", Op: "read", Kind: policy.KindPath, Path: path} }

func TestDecide(t *testing.T) {
	const user = policy.ScopeUser
	sock := func(p string) Ask { return Ask{Op: "connect", Kind: policy.KindSocket, Path: p} }
	host := func(h string, port int) Ask { return Ask{Op: "connect", Kind: policy.KindHost, Host: h, Port: port} }
	for name, c := range map[string]struct {
		ask    Ask
		rules  []policy.Rule
		edit   func(*Env)
		want   Decision
		errno  syscall.Errno
		reason string
		scope  Scope
		path   string
	}{
		"unknown path asks": {ask: read("/home/u/x"), want: AskHuman, errno: syscall.EACCES,
			reason: "not granted", scope: File, path: "/home/u/x"},
		"static refuses": {ask: read("/home/u/x"), edit: func(e *Env) { e.Static = true }, want: Deny,
			errno: syscall.EACCES, reason: "static"},
		"nobody there refuses": {ask: read("/home/u/x"), edit: func(e *Env) { e.NoPrompt = true }, want: Deny,
			errno: syscall.EACCES, reason: "nobody"},
		"prompt allow": {ask: read("/home/u/x"), edit: func(e *Env) { e.NoPrompt, e.Unasked = true, Allow },
			want: Allow, scope: File, path: "/home/u/x"},
		"prompt allow keeps secrets": {ask: read("/home/u/.ssh/id"), edit: func(e *Env) {
			e.NoPrompt, e.Unasked = true,
				Allow
		}, want: Deny, errno: syscall.ENOENT, reason: "private keys"},
		"secret": {ask: read("/home/u/.ssh/id"), want: Deny, errno: syscall.ENOENT,
			reason: "private keys"},
		"secret under a wide allow": {ask: read("/home/u/.ssh/id"), rules: []policy.Rule{rule(t, user, policy.KindPath,
			"~/**", policy.Read, policy.Allow)}, want: Deny, errno: syscall.ENOENT},
		"secret named by a rule": {ask: read("/home/u/.ssh/known_hosts"), rules: []policy.Rule{rule(t, user,
			policy.KindPath, "~/.ssh/known_hosts", policy.Read, policy.Allow)}, want: Deny, errno: syscall.ENOENT},
		"secret with an ask rule": {ask: read("/home/u/.ssh/id"), rules: []policy.Rule{rule(t, user, policy.KindPath,
			"~/.ssh/**", policy.Read, policy.Ask)}, want: Deny, errno: syscall.ENOENT},
		"secret beside": {ask: read("/home/u/.ssh2"), want: AskHuman, errno: syscall.EACCES, scope: File,
			path: "/home/u/.ssh2"},
		"rule allows a clean tree": {ask: read("/home/u/.cargo/bin/x"), rules: []policy.Rule{rule(t, user,
			policy.KindPath, "~/.cargo/bin/**", policy.Read, policy.Allow)}, want: Allow, scope: Tree,
			path: "/home/u/.cargo/bin"},
		"rule tree with a secret in": {ask: read("/home/u/.cargo/x"), rules: []policy.Rule{rule(t, user, policy.KindPath,
			"~/.cargo/**", policy.Read, policy.Allow)}, want: Allow, scope: File, path: "/home/u/.cargo/x"},
		"rule tree with a deny in": {ask: read("/srv/a"), rules: []policy.Rule{rule(t, user, policy.KindPath, "/srv/**",
			policy.Read, policy.Allow), rule(t, user, policy.KindPath, "/srv/x", policy.Read, policy.Deny)}, want: Allow,
			scope: File, path: "/srv/a"},
		"whole root is never a tree": {ask: read("/srv/a"), rules: []policy.Rule{rule(t, user, policy.KindPath, "/**",
			policy.Read, policy.Allow)}, want: Allow, scope: File, path: "/srv/a"},
		"rule denies": {ask: read("/srv/a"), rules: []policy.Rule{rule(t, user, policy.KindPath, "/srv/**",
			policy.Read, policy.Deny)}, want: Deny, errno: syscall.EACCES, reason: "denied by rule"},
		"read rule does not write": {ask: Ask{Op: "unlink", Path: "/srv/a"}, rules: []policy.Rule{rule(t, user,
			policy.KindPath, "/srv/**", policy.Read, policy.Allow)}, want: AskHuman, errno: syscall.EACCES, scope: File,
			path: "/srv/a"},
		"unknown operation is a write": {ask: Ask{Op: "frobnicate", Path: "/srv/a"}, rules: []policy.Rule{rule(t, user,
			policy.KindPath, "/srv/**", policy.Read, policy.Allow)}, want: AskHuman, errno: syscall.EACCES, scope: File,
			path: "/srv/a"},
		"exec rule": {ask: Ask{Kind: policy.KindExec, Path: "/srv/t"}, rules: []policy.Rule{rule(t, user,
			policy.KindExec, "/srv/t", "", policy.Deny)}, want: Deny, errno: syscall.EACCES},
		"link to a secret": {ask: Ask{Op: "read", Path: "/home/u/proj/docs", Target: "/home/u/.ssh"},
			rules: []policy.Rule{rule(t, user, policy.KindPath, "$PROJECT/**", policy.Read, policy.Allow)}, want: Deny,
			errno: syscall.ENOENT, reason: "private keys"},
		"link asks about its target": {ask: Ask{Op: "read", Path: "/srv/l", Target: "/opt/x"}, rules: []policy.Rule{rule(t,
			user, policy.KindPath, "/srv/**", policy.Read, policy.Allow)}, want: AskHuman, errno: syscall.EACCES, scope: File,
			path: "/opt/x"},
		"link itself not granted": {ask: Ask{Op: "read", Path: "/srv/l", Target: "/opt/x"}, rules: []policy.Rule{rule(t,
			user, policy.KindPath, "/opt/**", policy.Read, policy.Allow)}, want: AskHuman, errno: syscall.EACCES, scope: File,
			path: "/opt/x"},
		"an option grants": {ask: read("/usr/x"), edit: func(e *Env) {
			e.Files = func(p string) bool { return p == "/usr/x" }
		}, want: Allow, scope: File, path: "/usr/x"},
		"an option grants another": {ask: Ask{Op: "write", Path: "/usr/x"},
			edit: func(e *Env) { e.Files = func(p string) bool { return p == "/usr/y" } }, want: AskHuman,
			errno: syscall.EACCES, scope: File, path: "/usr/x"},
		"history by rule": {ask: Ask{Op: "create", Kind: policy.KindPath, Path: "/home/u/.lesshsQ"},
			rules: []policy.Rule{rule(t, user, policy.KindPath, "/home/u/.lesshsQ", policy.Write, policy.Allow)}, want: Allow,
			scope: File, path: "/home/u/.lesshsQ"},
		"a file of nearly that name": {ask: Ask{Op: "create", Kind: policy.KindPath, Path: "/home/u/lesshsQ"},
			want: AskHuman, errno: syscall.EACCES, scope: File, path: "/home/u/lesshsQ"},
		"docker.sock": {ask: sock("/run/docker.sock"), rules: []policy.Rule{rule(t, user, policy.KindSocket,
			"/run/docker.sock", "", policy.Allow)}, want: Deny, errno: syscall.EACCES, reason: "only the org policy"},
		"docker.sock as a path": {ask: Ask{Op: "open", Path: "/run/docker.sock", Flags: []string{"socket"}},
			want: Deny, errno: syscall.EACCES, reason: "root on the host"},
		"docker.sock by the org": {ask: sock("/run/docker.sock"), rules: []policy.Rule{rule(t, policy.ScopeOrg,
			policy.KindSocket, "/run/docker.sock", "", policy.Allow)}, want: Allow, scope: File, path: "/run/docker.sock"},
		"abstract X11": {ask: sock("@/tmp/.X11-unix/X0"), want: Deny, errno: syscall.EACCES,
			reason: "display"},
		"some socket": {ask: sock("/srv/s"), want: AskHuman, errno: syscall.EACCES, scope: File,
			path: "/srv/s"},
		"host listed": {ask: host("Example.com.", 443), edit: func(e *Env) {
			p,
				_ := peer.ParsePattern("example.com")
			e.Hosts = []peer.Pattern{p}
		}, want: Allow, scope: File, path: "example.com"},
		"host not listed": {ask: host("example.com", 22), edit: func(e *Env) {
			p,
				_ := peer.ParsePattern("example.com")
			e.Hosts = []peer.Pattern{p}
		}, want: AskHuman, errno: syscall.EACCES, scope: File, path: "example.com"},
		"host denied at any port": {ask: host("example.com", 22), rules: []policy.Rule{rule(t, user, policy.KindHost,
			"example.com", "", policy.Deny)}, edit: func(e *Env) { e.AllHosts = true }, want: Deny, errno: syscall.EACCES},
		"bad host": {ask: host("example.com@evil", 443), edit: func(e *Env) { e.AllHosts = true },
			want: Deny, errno: syscall.EINVAL, reason: "not allowed"},
		"dotdot":     {ask: read("/usr/../home"), want: Deny, errno: syscall.EINVAL, reason: "clean"},
		"relative":   {ask: read("usr"), want: Deny, errno: syscall.EINVAL},
		"empty":      {ask: read(""), want: Deny, errno: syscall.EINVAL},
		"nul":        {ask: read("/a\x00b"), want: Deny, errno: syscall.EINVAL},
		"bad target": {ask: Ask{Op: "read", Path: "/a", Target: "b"}, want: Deny, errno: syscall.EINVAL},
		"other bytes": {ask: read("/srv/\xff"), rules: []policy.Rule{rule(t, user, policy.KindPath,
			`/srv/\xfe`, policy.Read, policy.Allow)}, want: AskHuman, errno: syscall.EACCES, scope: File, path: "/srv/\xff"},
	} {
		e := env(t, c.rules...)
		if c.edit != nil {
			c.edit(&e)
		}
		v := Decide(c.ask, e)
		if v.Decision != c.want || v.Decision != Allow && v.Errno != int(c.errno) || !strings.Contains(v.Reason, c.reason) ||
			v.Silent {
			t.Errorf("%s: %+v", name, v)
		}
		if c.want != Deny && (v.Scope != c.scope || v.Path != c.path) {
			t.Errorf("%s: scope %v path %q, want %v %q", name, v.Scope, v.Path, c.scope, c.path)
		}
	}
}

// A program's history is refused without a question or a word, unless a rule names it.
func TestHistories(t *testing.T) {
	for _, p := range []string{"/home/u/.lesshsQ", "/home/u/.viminfz.tmp", "/home/u/.python_history",
		"/srv/.bash_history-123.tmp"} {
		if v := Decide(Ask{Op: "create", Kind: policy.KindPath, Path: p}, env(t)); v.Decision != Deny || !v.Silent ||
			v.Errno != int(syscall.EACCES) {
			t.Errorf("%s: %+v", p, v)
		}
		if v := Decide(Ask{Op: "read", Kind: policy.KindPath, Path: p}, env(t)); v.Silent {
			t.Errorf("reading %s is silent: %+v", p, v)
		}
	}
}

func TestVerdictNamesItsRule(t *testing.T) {
	e := env(t, rule(t, policy.ScopeUser, policy.KindPath, "/srv/**", policy.Read, policy.Deny))
	if v := Decide(read("/srv/a"), e); v.Rule != "deny read /srv/**" || v.Origin != "policy.toml:3" {
		t.Errorf("%+v", v)
	}
}

func TestProbes(t *testing.T) {
	e := env(t)
	for path, want := range map[string]syscall.Errno{"/etc/ld.so.preload": syscall.ENOENT,
		"/sys/fs/selinux/enforce": syscall.ENOENT, "/run/nscd/socket": syscall.ENOENT,
		"/var/run/nscd": syscall.ENOENT, "/run/systemd/system": syscall.ENOENT,
		"/sys/kernel/mm/transparent_hugepage/enabled": syscall.EACCES} {
		if v := Decide(read(path), e); v.Decision != Deny || !v.Silent || v.Errno != int(want) || v.Reason == "" {
			t.Errorf("%s: %+v", path, v)
		}
	}
	for _, path := range []string{"/run/nscd2", "/etc/ld.so.preload2", "/run"} {
		if v := Decide(read(path), e); v.Decision != AskHuman || v.Silent {
			t.Errorf("%s: %+v", path, v)
		}
	}
	if v := Decide(Ask{Op: "write", Path: "/etc/ld.so.preload"}, e); v.Silent {
		t.Error("writing a probed path must not be silent")
	}
	e = env(t, rule(t, policy.ScopeUser, policy.KindPath, "/run/nscd/**", policy.Read, policy.Allow))
	if v := Decide(read("/run/nscd/socket"), e); v.Decision != Allow {
		t.Errorf("a rule must win over the list: %+v", v)
	}
	for _, p := range probes() {
		if p.Reason == "" || p.Errno == 0 || p.Path[0] != '/' {
			t.Errorf("%+v", p)
		}
	}
}

func TestGrants(t *testing.T) {
	type step struct {
		path string
		op   string
		want Decision
	}
	for name, c := range map[string]struct {
		grants []Grant
		steps  []step
	}{
		"file": {[]Grant{{Name: "/s/a", Scope: File, Allow: true, Access: policy.Read}},
			[]step{{"/s/a", "read", Allow}, {"/s/a", "write", AskHuman}, {"/s/a", "exec", Allow}, {"/s/ab", "read", AskHuman},
				{"/s/a/b", "read", AskHuman}}},
		"dir": {[]Grant{{Name: "/s", Scope: Dir, Allow: true, Access: policy.Read}},
			[]step{{"/s", "read", AskHuman}, {"/s/a", "read", Allow}, {"/s/a/b", "read", AskHuman}, {"/sx", "read", AskHuman}}},
		"tree": {[]Grant{{Name: "/s", Scope: Tree, Allow: true, Access: policy.Write}},
			[]step{{"/s", "read", Allow}, {"/s/a/b/c", "write", Allow}, {"/s-evil/a", "read", AskHuman}}},
		"root tree": {[]Grant{{Name: "/", Scope: Tree, Allow: true, Access: policy.Read}},
			[]step{{"/s/a", "read", Allow}, {"/home/u/.ssh/id", "read", Deny}}},
		"root dir": {[]Grant{{Name: "/", Scope: Dir, Allow: true, Access: policy.Read}}, []step{{"/s", "read", Allow},
			{"/s/a", "read", AskHuman}}},
		"nearer wins": {[]Grant{{Name: "/s", Scope: Tree, Allow: true, Access: policy.Read}, {Name: "/s/a", Scope: Tree,
			Access: policy.Read}, {Name: "/s/a/b", Scope: File, Allow: true, Access: policy.Read}}, []step{{"/s/x", "read",
			Allow}, {"/s/a/x", "read", Deny}, {"/s/a/b", "read", Allow}}},
		"refusal ties": {[]Grant{{Name: "/s", Scope: Tree, Allow: true, Access: policy.Read}, {Name: "/s", Scope: Dir,
			Access: policy.Read}}, []step{{"/s/x", "read", Deny}, {"/s/x/y", "read", Allow}}},
		"refused write": {[]Grant{{Name: "/s", Scope: Tree, Access: policy.Write}}, []step{{"/s/x", "write", Deny},
			{"/s/x", "read", AskHuman}}},
		"refused read": {[]Grant{{Name: "/s", Scope: Tree, Access: policy.Read}}, []step{{"/s/x", "write", Deny},
			{"/s/x", "exec", Deny}}},
		"expired": {[]Grant{{Name: "/s", Scope: Tree, Allow: true, Access: policy.Read, Life: Until, Until: now()}},
			[]step{{"/s/x", "read", AskHuman}}},
		"not yet": {[]Grant{{Name: "/s", Scope: Tree, Allow: true, Access: policy.Read, Life: Until,
			Until: now().Add(1)}}, []step{{"/s/x", "read", Allow}}},
		"replaced": {[]Grant{{Name: "/s", Scope: File, Allow: true, Access: policy.Read}, {Name: "/s", Scope: File,
			Access: policy.Read}}, []step{{"/s", "read", Deny}}},
		"socket is kept": {[]Grant{{Kind: policy.KindSocket, Name: "/s", Scope: File, Allow: true, Access: policy.Connect}},
			[]step{{"/s", "read", AskHuman}}},
	} {
		e := env(t)
		for _, g := range c.grants {
			e.Grants.Add(g)
		}
		for _, s := range c.steps {
			if v := Decide(Ask{Op: s.op, Path: s.path}, e); v.Decision != s.want {
				t.Errorf("%s: %s %s: %+v", name, s.op, s.path, v)
			}
		}
	}
	e := env(t)
	e.Grants.Add(Grant{Kind: policy.KindHost, Name: "example.com", Port: 443, Scope: File, Allow: true,
		Access: policy.Connect})
	for port, want := range map[int]Decision{443: Allow, 22: AskHuman} {
		if v := Decide(Ask{Kind: policy.KindHost, Host: "EXAMPLE.com", Port: port}, e); v.Decision != want {
			t.Errorf("port %d: %+v", port, v)
		}
	}
	if n := e.Grants.Revoke(policy.KindHost, "example.com"); n != 1 || len(e.Grants.List(now())) != 0 {
		t.Error("revoking left the grant")
	}
	if _, ok := (*Grants)(nil).Lookup(read("/x"), now()); ok {
		t.Error("a nil set granted")
	}
}

// TestAroundWhatActs: a rule about a directory is not about a place in it that acts outside of the sandbox, and one
// about that place is about what lies in it. Of answers the gate holds that (gate_repositories.txtar).
func TestAroundWhatActs(t *testing.T) {
	const free, acting = "/home/u/d/x", "/home/u/d/units/x"
	for dir, want := range map[string]Decision{"/home/u/d": AskHuman, "/home/u/d/units": Allow} {
		e := env(t, rule(t, policy.ScopeUser, policy.KindPath, dir+"/**", policy.Write, policy.Allow))
		e.Acts = func(p string) string {
			if strings.HasPrefix(p+"/", "/home/u/d/units/") {
				return "it is started"
			}
			return ""
		}
		v := Decide(Ask{Op: "write", Path: acting}, e)
		if v.Decision != want || (v.Acts != "") != (want == AskHuman) {
			t.Errorf("%s: %+v", dir, v)
		}
		if v := Decide(Ask{Op: "read", Path: acting}, e); v.Decision != Allow { // the control
			t.Errorf("%s, reading: %+v", dir, v)
		}
		if v := Decide(Ask{Op: "write", Path: free}, e); want == AskHuman && v.Decision != Allow {
			t.Errorf("%s, another file: %+v", dir, v)
		}
	}
}

func TestGrantVerdictScope(t *testing.T) {
	e := env(t)
	e.Grants.Add(Grant{Name: "/home/u", Scope: Tree, Allow: true, Access: policy.Read})
	e.Grants.Add(Grant{Name: "/srv", Scope: Tree, Allow: true, Access: policy.Read})
	if v := Decide(read("/home/u/x/y"), e); v.Decision != Allow || v.Scope != File || v.Path != "/home/u/x/y" {
		t.Errorf("a tree with secrets in it was opened whole: %+v", v)
	}
	if v := Decide(read("/srv/x/y"), e); v.Scope != Tree || v.Path != "/srv" {
		t.Errorf("%+v", v)
	}
	e.Grants.Add(Grant{Name: "/srv/no", Scope: File, Access: policy.Read})
	if v := Decide(read("/srv/x/y"), e); v.Scope != File {
		t.Errorf("a tree with a refusal in it was opened whole: %+v", v)
	}
}

// means is what an answer to a question about one access comes to: what is kept, and the verdict on the access.
func means(t *testing.T, q Question, ans Answer, e Env) (Verdict, []Grant) {
	t.Helper()
	c, err := Means(&q, ans, now())
	if err != nil {
		t.Fatal(err)
	}
	for _, g := range c.Covers {
		e.Grants.Add(g)
	}
	return c.Answer.Verdict(q.Asks()[0], e), c.Covers
}

func TestAnswersVerdict(t *testing.T) {
	e := env(t)
	v, g := means(t, Question{Op: "read", Path: "/srv/d/f"}, Answer{Allow: true, Scope: Tree, Life: Session}, e)
	if v.Decision != Allow || v.Scope != Tree || v.Path != "/srv/d" || len(g) != 1 || g[0].Name != "/srv/d" {
		t.Fatalf("%+v %+v", v, g)
	}
	if v := Decide(read("/srv/d/x/y"), e); v.Decision != Allow {
		t.Errorf("%+v", v)
	}
	v, g = means(t, Question{Op: "read", Path: "/opt/x"}, Answer{Allow: true, Life: LifeOnce}, e)
	if v.Decision != Allow || v.Scope != Once || len(g) != 0 {
		t.Errorf("once: %+v %v", v, g)
	}
	v, g = means(t, Question{Op: "read", Path: "/opt/x"}, Answer{Scope: File, Life: Session, By: "uid 1000"}, e)
	if v.Decision != Deny || v.Errno != int(syscall.EACCES) || v.Reason != "refused by uid 1000" || len(g) != 1 {
		t.Errorf("no: %+v %v", v, g)
	}
	if v := Decide(read("/opt/x"), e); v.Decision != Deny || !strings.Contains(v.Reason, "earlier in this session") {
		t.Errorf("%+v", v)
	}
	// An approval cannot lift what is refused for good.
	for _, p := range []string{"/home/u/.ssh/id", "/etc/shadow"} {
		if v, _ := means(t, Question{Op: "read", Path: p}, Answer{Allow: true, Scope: File, Life: Session},
			e); v.Decision != Deny {
			t.Errorf("%s was approved: %+v", p, v)
		}
	}
	e.Static = true
	if v, _ := means(t, Question{Op: "read", Path: "/home/u/.ssh/id"}, Answer{Allow: true}, e); v.Decision != Deny {
		t.Errorf("static: %+v", v)
	}
	e = env(t)
	v, g = means(t, Question{Op: "read", Path: "/srv/l", Target: "/opt/t"}, Answer{Allow: true, Scope: File,
		Life: Session}, e)
	if v.Decision != Allow || v.Path != "/opt/t" || len(g) != 2 || g[0].Name != "/opt/t" || g[1].Name != "/srv/l" {
		t.Errorf("link: %+v %+v", v, g)
	}
	if v, _ := means(t, Question{Op: "read", Path: "/home/u/f"}, Answer{Allow: true, Scope: Tree, Life: Session},
		e); v.Scope != File || v.Path != "/home/u/f" {
		t.Errorf("tree with secrets: %+v", v)
	}
	if _, err := Means(&Question{Op: "read", Path: "/a"}, Answer{Allow: true, Scope: File, Life: Until, Until: now()},
		now()); err == nil {
		t.Error("an answer that has expired was taken")
	}
	// What an answer does not cover is refused to whoever waited for it.
	if v := (Answer{Allow: true, Scope: File, Life: Session}).Verdict(read("/srv/other"), e); v.Decision != Deny {
		t.Errorf("%+v", v)
	}
}

// TestListingIsNames: a listing gives names, whoever allows it and however far; contents include the names.
func TestListingIsNames(t *testing.T) {
	dir := func(op, p string) Ask { return Ask{Op: op, Path: p, Flags: []string{"dir"}} }
	list := Question{Op: "list", Path: "/srv/d", Dir: true}
	for _, c := range []struct {
		scope Scope
		lists []string
		not   []string
	}{
		{File, []string{"/srv/d"}, []string{"/srv/d/e", "/srv/d/e/f"}},
		{Dir, []string{"/srv/d/e"}, []string{"/srv/d/e/f"}},
		{Tree, []string{"/srv/d", "/srv/d/e", "/srv/d/e/f"}, []string{"/srv"}},
	} {
		for _, byRule := range []bool{false, true} {
			e := env(t)
			ct, err := Means(&list, Answer{Allow: true, Scope: c.scope, Life: Session}, now())
			if err != nil {
				t.Fatal(err)
			}
			if byRule {
				r, err := ct.Rules(now())
				if err != nil {
					t.Fatal(err)
				}
				r[0].Origin.Scope = policy.ScopeUser
				e = env(t, r...)
			} else {
				e.Grants.Add(ct.Covers[0])
			}
			for _, p := range c.lists {
				if v := Decide(dir("list", p), e); v.Decision != Allow || v.Whole || v.Scope != File {
					t.Errorf("%s, rule %t: listing %s: %+v", c.scope, byRule, p, v)
				}
				for _, a := range []Ask{read(p + "/file"), dir("read", p), {Op: "write", Path: p + "/file"}} {
					if v := Decide(a, e); v.Decision != AskHuman {
						t.Errorf("%s, rule %t: %s %s: %+v", c.scope, byRule, a.Op, a.Path, v)
					}
				}
			}
			for _, p := range c.not {
				if v := Decide(dir("list", p), e); v.Decision != AskHuman {
					t.Errorf("%s, rule %t: listing %s: %+v", c.scope, byRule, p, v)
				}
			}
		}
	}
	e := env(t)
	e.Grants.Add(Grant{Name: "/srv/d", Scope: Tree, Allow: true, Access: policy.Read})
	if v := Decide(dir("list", "/srv/d/e"), e); v.Decision != Allow || !v.Whole {
		t.Errorf("the control, a tree: %+v", v)
	}
}

// TestAsksApart: what a rule asks about is not covered by an answer about what is around it.
func TestAsksApart(t *testing.T) {
	e := env(t, rule(t, policy.ScopeUser, policy.KindPath, "/srv/d/ask/**", policy.Read, policy.Ask))
	e.Grants.Add(Grant{Name: "/srv/d", Scope: Tree, Allow: true, Access: policy.Read})
	if v := Decide(read("/srv/d/ask/f"), e); v.Decision != AskHuman {
		t.Errorf("%+v", v)
	}
	if v := Decide(read("/srv/d/f"), e); v.Decision != Allow || v.Scope != File {
		t.Errorf("%+v", v)
	}
	e.Grants.Add(Grant{Name: "/srv/d/ask", Scope: Tree, Allow: true, Access: policy.Read})
	if v := Decide(read("/srv/d/ask/f"), e); v.Decision != Allow {
		t.Errorf("%+v", v)
	}
}

func TestRules(t *testing.T) {
	for _, c := range []struct {
		q    Question
		ans  Answer
		want string
	}{
		{Question{Op: "read", Path: "/a/b*\xff"}, Answer{Allow: true, Scope: File, Life: Forever}, `allow read /a/b\*\xff`},
		{Question{Op: "read", Path: "/a/b"}, Answer{Allow: true, Scope: Dir, Life: Forever}, "allow read /a/*"},
		{Question{Op: "read", Path: "/a/b"}, Answer{Scope: Tree, Life: Forever}, "deny read /a/**"},
		{Question{Op: "write", Path: "/a/b", Dir: true}, Answer{Allow: true, Scope: Tree}, "allow write /a/b/**"},
		{Question{Op: "list", Path: "/a/b", Dir: true}, Answer{Allow: true, Scope: File}, "allow list /a/b"},
		{Question{Op: "read", Path: "/a/l", Target: "/t"}, Answer{Allow: true, Scope: File},
			"allow read /t; allow read /a/l"},
		{Question{Op: "read", Path: "/a", Paths: []Name{{Path: "/a/x"}, {Path: "/a/y"}}}, Answer{Allow: true, Scope: File},
			"allow read /a/x; allow read /a/y"},
		{Question{Op: "connect", Host: "A.b", Port: 443}, Answer{Allow: true, Scope: HostScope}, "allow connect a.b:443"},
		{Question{Op: "connect", Host: "x.a.example", Port: 443}, Answer{Allow: true, Scope: Domain},
			"allow connect *.a.example:443"},
		{Question{Op: "connect", Path: "@a*"}, Answer{Allow: true, Scope: File}, `allow connect @a\*`},
		{Question{Op: "exec", Path: "/bin/x"}, Answer{Allow: true, Scope: File}, "allow exec /bin/x"},
		{Question{Op: "read", Path: "/fuse", Dir: true, Whole: true}, Answer{Allow: true, Scope: File},
			"allow read /fuse/**"},
	} {
		ct, err := Means(&c.q, c.ans, now())
		var got []string
		if err == nil {
			var list []policy.Rule
			list, err = ct.Rules(now())
			for _, r := range list {
				got = append(got, r.String())
			}
		}
		if err != nil || strings.Join(got, "; ") != c.want {
			t.Errorf("%+v: %v %v, want %s", c.q, got, err, c.want)
		}
	}
	if _, err := Means(&Question{Op: "read", Path: "/a"}, Answer{Allow: true, Scope: Tree}, now()); err == nil ||
		!strings.Contains(err.Error(), "root directory") {
		t.Error(err)
	}
	// A stored answer must settle the same question next time.
	ct, _ := Means(&Question{Op: "read", Path: "/srv/\xff"}, Answer{Allow: true, Scope: File, Life: Forever}, now())
	r, _ := ct.Rules(now())
	r[0].Origin.Scope = policy.ScopeUser
	if v := Decide(read("/srv/\xff"), env(t, r...)); v.Decision != Allow {
		t.Errorf("%+v", v)
	}
}

func FuzzDecide(f *testing.F) {
	f.Add("/home/u/.ssh/id", "", "read")
	f.Add("/srv/a", "/home/u/.ssh", "write")
	e := env(f, rule(f, policy.ScopeUser, policy.KindPath, "/**", policy.Write, policy.Allow))
	e.Grants.Add(Grant{Name: "/", Scope: Tree, Allow: true, Access: policy.Write})
	f.Fuzz(func(t *testing.T, path, target, op string) {
		v := Decide(Ask{Op: op, Path: path, Target: target}, e)
		for _, p := range []string{path, target, v.Path} {
			if v.Decision == Allow && (p == "/home/u/.ssh" || strings.HasPrefix(p, "/home/u/.ssh/") ||
				strings.Contains(p, "/../")) {
				t.Fatalf("%q -> %q: %+v", path, target, v)
			}
		}
	})
}

func BenchmarkDecide(b *testing.B) {
	e := env(b)
	for b.Loop() {
		Decide(read("/home/u/a/b/c/d"), e)
	}
}

// What is answered without a question is told of in the documents, entry by entry.
func TestProbesAreDocumented(t *testing.T) {
	doc, err := os.ReadFile("../../../docs/policy.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range probes() {
		if row := fmt.Sprintf("| `%s` | %s | %s |\n", p.Path, unix.ErrnoName(syscall.Errno(p.Errno)),
			p.Reason); !strings.Contains(string(doc), row) {
			t.Errorf("docs/policy.md lacks %s", row)
		}
	}
	for _, h := range histories() {
		if !strings.Contains(string(doc), "`"+h+"`") {
			t.Errorf("docs/policy.md lacks %s", h)
		}
	}
}

// TestStrangersAskNothing: the rule of a project that is not trusted makes no question of what would be allowed, nor of
// what is refused silently. The control is the same project, trusted.
func TestStrangersAskNothing(t *testing.T) {
	r, err := policy.NewRule(policy.Rule{Kind: policy.KindPath, Pattern: "/**", Access: policy.Read,
		Decision: policy.Ask}, policy.Vars{})
	if err != nil {
		t.Fatal(err)
	}
	for _, trusted := range []bool{false, true} {
		store := policy.Store{}.With(policy.ScopeProject, r)
		store.ProjectTrusted = trusted
		env := Env{Policy: store.Match, Unread: []string{"/h/.bashrc"}, Files: func(string) bool { return true }}
		for p, silent := range map[string]bool{"/etc/ld.so.preload": true, "/h/.bashrc": true, "/h/shown": false} {
			env := env
			if silent {
				env.Files = nil
			}
			v := Decide(Ask{Op: "read", Path: p}, env)
			want := AskHuman
			if !trusted {
				want = map[bool]Decision{true: Deny, false: Allow}[silent]
			}
			if v.Decision != want || v.Silent != (want == Deny) {
				t.Errorf("%s, trusted: %t: %+v", p, trusted, v)
			}
		}
	}
}

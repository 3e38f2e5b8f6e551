package prompt

import (
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"sbx.example/sbx/broker/internal/decide"
	"sbx.example/sbx/broker/internal/policy"
	"sbx.example/sbx/selftest/need"
)

// thing is an object that a program could reach, and what it could want of it.
type thing struct {
	path string
	dir  bool
}

func (t thing) ask(need policy.Access) decide.Ask {
	a := decide.Ask{PID: 99, Exe: "/tmp/another", Op: string(need), Kind: policy.KindPath, Path: t.path}
	switch need {
	case policy.Exec:
		a.Kind = policy.KindExec
	case policy.Connect:
		a.Kind = policy.KindSocket
	}
	if t.dir {
		a.Flags = []string{"dir"}
	}
	return a
}

var needs = []policy.Access{policy.List, policy.Read, policy.Exec, policy.Write, policy.Connect}

// within is written anew here: the test must not lean on what it tests.
func within(p, dir string) bool { return p == dir || strings.HasPrefix(p, dir+"/") }

// gives says what a right brings along, and with a refusal what it takes along.
func gives(right, need policy.Access, allow bool) bool {
	with := map[policy.Access]string{policy.List: "list", policy.Read: "list read exec",
		policy.Write: "list read exec write", policy.Exec: "exec", policy.Connect: "connect"}
	if !allow {
		with = map[policy.Access]string{policy.List: "list", policy.Read: "list read exec write", policy.Write: "write",
			policy.Exec: "exec", policy.Connect: "connect"}
	}
	return slices.Contains(strings.Fields(with[right]), string(need))
}

// envs are a session in which an answer's grants hold, and another one with its rules alone.
func envs(t *testing.T, c decide.Consent, now time.Time) map[string]decide.Env {
	t.Helper()
	grants := decide.NewGrants()
	for _, g := range c.Covers {
		grants.Add(g)
	}
	out := map[string]decide.Env{"grants": {Grants: grants, Now: now}}
	rules, err := c.Rules(now)
	if err != nil {
		t.Fatal(err)
	}
	var store policy.Store
	for _, r := range rules {
		store = store.With(policy.ScopeUser, r)
	}
	out["rules"] = decide.Env{Policy: store.Match, Now: now}
	return out
}

// TestConsentTable: kind of access x merged or not x key: exactly these objects, for these rights, for that time,
// in the session and by the rule.
func TestConsentTable(t *testing.T) {
	now := time.Unix(1_000_000, 0)
	world := []thing{{"/h", true}, {"/h/m", false}, {"/h/o", true}, {"/h/o/z", false}, {"/h/n", true}, {"/h/n/a", false},
		{"/h/n/b", false}, {"/h/n/c", false},
		{"/h/n/s", true}, {"/h/n/s/x", false}, {"/h/n/s/t", true}, {"/h/n/s/t/y", false}, {"/h/n/u", true}, {"/h/nn", false}}
	kinds := []struct {
		op     string
		right  policy.Access
		single thing
		merged []thing
	}{
		{"list", policy.List, thing{"/h/n", true}, []thing{{"/h/n/s", true}, {"/h/n/u", true}}},
		{"read", policy.Read, thing{"/h/n/a", false}, []thing{{"/h/n/a", false}, {"/h/n/b", false}}},
		{"stat", policy.Read, thing{"/h/n/a", false}, []thing{{"/h/n/a", false}, {"/h/n/b", false}}},
		{"readlink", policy.Read, thing{"/h/n/a", false}, []thing{{"/h/n/a", false}, {"/h/n/b", false}}},
		{"write", policy.Write, thing{"/h/n/a", false}, []thing{{"/h/n/a", false}, {"/h/n/b", false}}},
		{"create", policy.Write, thing{"/h/n/a", false}, []thing{{"/h/n/a", false}, {"/h/n/b", false}}},
		{"rename", policy.Write, thing{"/h/n/a", false}, []thing{{"/h/n/a", false}, {"/h/n/b", false}}},
		{"chmod", policy.Write, thing{"/h/n/s", true}, []thing{{"/h/n/s", true}, {"/h/n/u", true}}},
		{"exec", policy.Exec, thing{"/h/n/a", false}, []thing{{"/h/n/a", false}, {"/h/n/b", false}}},
		{"connect", policy.Connect, thing{"/h/n/a", false}, nil},
	}
	rows := 0
	for _, k := range kinds {
		for _, objects := range [][]thing{{k.single}, k.merged} {
			if objects == nil {
				continue
			}
			q := Question{Exe: "/usr/bin/cat", Op: k.op, Path: objects[0].path, Dir: objects[0].dir, Walk: "/h"}
			container := path.Dir(q.Path)
			if len(objects) > 1 {
				var list []Question
				for _, o := range objects {
					one := q
					one.Path, one.Dir = o.path, o.dir
					list = append(list, one)
				}
				q = decide.Join(list)
			} else if q.Dir {
				container = q.Path
			}
			for _, key := range []string{"o", "s", "h", "f", "p", "n", "v", "ds", "dh", "df", "dp", "dn", "dv", "ts", "th",
				"tf", "tp", "tn", "tv", "ws", "wh", "wf", "wp", "wn", "wv"} {
				rows++
				ans, _, ok := Keys([]byte(key), &q)
				if !ok {
					t.Fatalf("%s %q: no answer", k.op, key)
				}
				c, err := decide.Means(&q, ans, now)
				if err != nil {
					t.Fatal(err)
				}
				last := key[len(key)-1]
				allow := last != 'n' && last != 'v'
				lasts := key != "o" && key != "n"
				reach := func(p string) bool {
					if slices.ContainsFunc(objects, func(o thing) bool { return o.path == p }) {
						return true
					}
					switch key[0] {
					case 'd':
						return path.Dir(p) == container
					case 't':
						return within(p, container)
					case 'w':
						return within(p, "/h")
					}
					return false
				}
				for where, env := range envs(t, c, now) {
					for _, w := range world {
						for _, need := range needs {
							want := decide.AskHuman
							switch hit := lasts && reach(w.path) && gives(k.right, need, allow); {
							case hit && allow:
								want = decide.Allow
							case hit:
								want = decide.Deny
							}
							a := w.ask(need)
							if v := decide.Decide(a, env); v.Decision != want {
								t.Errorf("%s, %d objects, key %q, %s: %s %s is %v, want %v", k.op, len(objects), key, where, need, w.path,
									v.Decision, want)
							}
						}
					}
				}
				lives(t, k.op+" "+key, c, objects[0].ask(k.right), now, last, lasts)
			}
		}
	}
	if rows < 400 {
		t.Errorf("%d rows", rows)
	}
}

func anyProgram(int, string, string) bool { return true }

// TestConsentOfTheProgramsOwn: what a yes about the program's own directories opens, by what was asked for.
func TestConsentOfTheProgramsOwn(t *testing.T) {
	now := time.Unix(1_000_000, 0)
	own := decide.Env{Bases: decide.BaseDirs{Config: "/h/config", Data: "/h/data", State: "/h/state", Cache: "/h/cache"},
		Runs: anyProgram}
	anew := []string{"/h/cache/vi", "/h/state/vi"}
	for _, c := range []struct {
		op, path string
		written  []string // beside these the others are read
	}{
		{"list", "/h/config/vi", anew},
		{"read", "/h/config/vi/rc", anew},
		{"read", "/h/cache/vi/deep/x", anew},
		{"write", "/h/state/vi", anew},
		{"create", "/h/data/vi/x", append([]string{"/h/data/vi"}, anew...)},
		{"write", "/h/config/vi/x", append([]string{"/h/config/vi"}, anew...)},
	} {
		for _, key := range []string{"as", "ah", "af", "ap", "an", "av"} {
			q := Question{Exe: "/usr/bin/vi", Op: c.op, Path: c.path}
			own.Offer(&q)
			ans, _, ok := Keys([]byte(key), &q)
			if !ok {
				t.Fatalf("%s %s %q: no answer", c.op, c.path, key)
			}
			consent, err := decide.Means(&q, ans, now)
			if err != nil {
				t.Fatal(err)
			}
			last := key[1]
			allow := last != 'n' && last != 'v'
			for where, env := range envs(t, consent, now) {
				for _, dir := range []string{"/h/config/vi", "/h/data/vi", "/h/state/vi", "/h/cache/vi", "/h/config/vim",
					"/h/cache", "/h/vi"} {
					for _, need := range needs {
						want, right := decide.AskHuman, policy.Read
						if slices.Contains(c.written, dir) {
							right = policy.Write
						}
						if !allow {
							right = q.Right()
						}
						if strings.HasSuffix(dir, "/vi") && dir != "/h/vi" && gives(right, need, allow) {
							want = map[bool]decide.Decision{true: decide.Allow, false: decide.Deny}[allow]
						}
						if v := decide.Decide(thing{dir + "/x", false}.ask(need), env); v.Decision != want {
							t.Errorf("%s %s, key %q, %s: %s in %s is %v, want %v", c.op, c.path, key, where, need, dir, v.Decision,
								want)
						}
					}
				}
			}
			lives(t, c.op+" "+key, consent, thing{c.path, false}.ask(q.Right()), now, last, true)
		}
	}
}

// lives checks for how long an answer holds.
func lives(t *testing.T, what string, c decide.Consent, a decide.Ask, now time.Time, last byte, lasts bool) {
	t.Helper()
	for after, hour := range map[time.Duration]bool{59 * time.Minute: true, 61 * time.Minute: false,
		1000 * time.Hour: false} {
		env := envs(t, c, now)["grants"]
		env.Now = now.Add(after)
		holds := decide.Decide(a, env).Decision != decide.AskHuman
		if want := lasts && (last != 'h' || hour); holds != want {
			t.Errorf("%s: after %v it holds: %t", what, after, holds)
		}
	}
	stored := c.Answer.Persist != ""
	if want := last == 'f' || last == 'p' || last == 'v'; stored != want {
		t.Errorf("%s: stored %t", what, stored)
	}
}

// shown are the parts of a text, read by somebody who knows nothing but the words.
var shown = []struct {
	words  *regexp.Regexp
	covers func(p, named string, dir bool, need policy.Access) bool
}{
	{regexp.MustCompile(`^everything below <(\w*)> at every depth$`), func(p, named string, _ bool,
		_ policy.Access) bool {
		return within(p, strings.TrimSuffix(named, "/"))
	}},
	{regexp.MustCompile(`^<(\w*)> and every directory below$`), func(p, named string, dir bool, need policy.Access) bool {
		return need == policy.List && within(p, strings.TrimSuffix(named, "/"))
	}},
	{regexp.MustCompile(`^the directories directly in <(\w*)>$`), func(p, named string, dir bool,
		need policy.Access) bool {
		return need == policy.List && path.Dir(p) == strings.TrimSuffix(named, "/")
	}},
	{regexp.MustCompile(`^what lies directly in <(\w*)>(?: \(of directories names\))?$`), func(p, named string, dir bool,
		need policy.Access) bool {
		return path.Dir(p) == strings.TrimSuffix(named, "/")
	}},
	{regexp.MustCompile(`^<(\w*)> \(names only\)$`), func(p, named string, dir bool, need policy.Access) bool {
		return need == policy.List && p == strings.TrimSuffix(named, "/")
	}},
	{regexp.MustCompile(`^<(\w*)> itself \(not what is in it\)$`), func(p, named string, dir bool,
		need policy.Access) bool {
		return p == strings.TrimSuffix(named, "/")
	}},
	{regexp.MustCompile(`^<(\w*)>$`), func(p, named string, dir bool, need policy.Access) bool { return p == named }},
}

// says reads the text at a key: may this be opened by what stands there?
func says(t *testing.T, text string, a decide.Ask, dir bool, need policy.Access) bool {
	t.Helper()
	verbs := map[string]policy.Access{"list ": policy.List, "read ": policy.Read, "write ": policy.Write,
		"run ": policy.Exec, "connect to ": policy.Connect}
	var right policy.Access
	for part := range strings.SplitSeq(text, ", ") {
		for verb, means := range verbs {
			if rest, ok := strings.CutPrefix(strings.TrimPrefix(part, "and "), verb); ok {
				part, right = rest, means
			}
		}
		if right == "" {
			t.Fatalf("what right is %q?", text)
		}
		if gives(right, need, true) && covered(t, part, a.Path, dir, need) {
			return true
		}
	}
	return false
}

// covered reads one part of a text.
func covered(t *testing.T, part, p string, dir bool, need policy.Access) bool {
	t.Helper()
	for _, s := range shown {
		if m := s.words.FindStringSubmatch(part); m != nil {
			name, err := hex.DecodeString(m[1])
			if err != nil {
				t.Fatal(err)
			}
			return s.covers(p, string(name), dir, need)
		}
	}
	t.Fatalf("nobody knows what %q means", part)
	return false
}

// meaning is decide.Means, or a wrong one.
type meaning func(*Question, Answer, time.Time) (decide.Consent, error)

// checkShown: nothing is opened that the text at the key does not cover, and all that waits is on the screen.
func checkShown(t *testing.T, q Question, keys string, probes []thing, means meaning) error {
	t.Helper()
	now := time.Unix(1_000_000, 0)
	ans, _, ok := Keys([]byte(keys), &q)
	if !ok || !ans.Allow {
		return nil
	}
	said, err := decide.Means(&q, ans, now)
	if err != nil {
		return nil
	}
	text := said.What(func(p string) string { return "<" + hex.EncodeToString([]byte(p)) + ">" })
	c, err := means(&q, ans, now)
	if err != nil {
		return err
	}
	for _, w := range append(probes, toThings(q.Objects())...) {
		for _, need := range needs {
			a := w.ask(need)
			for where, env := range envsOf(c, now) {
				v := decide.Decide(a, env)
				if v.Decision == decide.Allow && (len(said.Covers) == 0 || !says(t, text, a, w.dir, need)) {
					return fmt.Errorf("%q at %+v: %s of %q is open by the %s, and the text says %q",
						keys, q, need, w.path, where, text)
				}
				if v.Decision == decide.Allow && !c.Answer.Life.Lasts() {
					return fmt.Errorf("%q at %+v keeps %s of %q", keys, q, need, w.path)
				}
			}
		}
	}
	rows := strings.Join(Style{Width: 4000}.rows(&q, 100), "\n")
	for _, n := range q.Paths {
		if name := quote(strings.TrimPrefix(n.Path, strings.TrimSuffix(q.Path, "/")+"/")); !strings.Contains(rows, name) {
			return fmt.Errorf("%q is not on the screen:\n%s", n.Path, rows)
		}
	}
	if !ascii(strings.ReplaceAll(rows, "\n", "")) {
		return fmt.Errorf("%q", rows)
	}
	return nil
}

// envsOf is envs for answers that no rule can stand for.
func envsOf(c decide.Consent, now time.Time) map[string]decide.Env {
	grants := decide.NewGrants()
	for _, g := range c.Covers {
		grants.Add(g)
	}
	out := map[string]decide.Env{"session": {Grants: grants, Now: now}}
	if rules, err := c.Rules(now); err == nil {
		var store policy.Store
		for _, r := range rules {
			store = store.With(policy.ScopeUser, r)
		}
		out["rule"] = decide.Env{Policy: store.Match, Now: now}
	}
	return out
}

func toThings(names []Name) (out []thing) {
	for _, n := range names {
		out = append(out, thing{n.Path, n.Dir})
	}
	return out
}

// randomPath makes paths that often lie in each other, of names that a hostile program would choose.
func randomPath(r *rand.Rand) string {
	names := []string{"a", "b", ".env", "*", "a*", "**", "?", "[a]", "a\nb", "\x1b[2J", "\xff", "a, b",
		" itself (not what is in it)", "a\\", strings.Repeat("x", 250), "{a,b}", "~"}
	var b strings.Builder
	for range 1 + r.IntN(4) {
		b.WriteString("/" + names[r.IntN(len(names))])
	}
	return b.String()
}

// TestNothingOpensThatIsNotShown tries answers to questions that hostile programs could have put. Its controls are
// meanings that give a little more than is said: each is found.
func TestNothingOpensThatIsNotShown(t *testing.T) {
	if err := tryShown(t, decide.Means); err != nil {
		t.Fatal(err)
	}
	wider := func(widen func(*decide.Grant)) meaning {
		return func(q *Question, a Answer, now time.Time) (decide.Consent, error) {
			c, err := decide.Means(q, a, now)
			c.Covers = slices.Clone(c.Covers)
			for i := range c.Covers {
				widen(&c.Covers[i])
			}
			return c, err
		}
	}
	for what, wrong := range map[string]meaning{
		"a file is its directory":  wider(func(g *decide.Grant) { g.Name, g.Scope = path.Dir(g.Name), decide.Dir }),
		"a directory is a tree":    wider(func(g *decide.Grant) { g.Scope = decide.Tree }),
		"to list is to read":       wider(func(g *decide.Grant) { g.Access = policy.Read }),
		"to read is to write":      wider(func(g *decide.Grant) { g.Access = policy.Write }),
		"a tree is the tree above": wider(func(g *decide.Grant) { g.Name = path.Dir(g.Name) }),
		"once is for as long as it is kept": func(q *Question, a Answer, now time.Time) (decide.Consent, error) {
			if a.Life == ForOnce {
				a.Scope, a.Life = File, ForSession
			}
			return decide.Means(q, a, now)
		},
	} {
		if tryShown(t, wrong) == nil {
			t.Errorf("%s: not found", what)
		}
	}
}

// tryShown puts questions at random.
func tryShown(t *testing.T, means meaning) error {
	t.Helper()
	r := rand.New(rand.NewPCG(19, 1))
	ops := []string{"list", "read", "stat", "write", "create", "exec", "connect"}
	keys := []string{"o", "s", "h", "f", "p", "ds", "tf", "wp", "dh", "ts", "ws", "as", "af"}
	own := decide.Env{Bases: decide.BaseDirs{Config: "/a", Data: "/b", State: "/~", Cache: "/.env"}, Runs: anyProgram}
	for range need.Rounds(1000, 4000) {
		q := Question{Exe: "/bin/" + []string{"x", "a", "a, b"}[r.IntN(3)], Op: ops[r.IntN(len(ops))], Path: randomPath(r)}
		q.Dir = q.Op == "list" || r.IntN(4) == 0
		if r.IntN(3) == 0 {
			q.Walk = path.Dir(path.Dir(q.Path))
		}
		if r.IntN(3) == 0 && q.Op != "connect" {
			list := []Question{}
			for i := range 2 + r.IntN(maxTogether-1) {
				one := q
				one.Path = path.Join(path.Dir(q.Path), fmt.Sprintf("%d%s", i, path.Base(randomPath(r))))
				own.Offer(&one)
				list = append(list, one)
			}
			q = decide.Join(list)
		}
		own.Offer(&q)
		var probes []thing
		for range 12 {
			p := randomPath(r)
			switch r.IntN(4) {
			case 0:
				p = path.Join(q.Path, p)
			case 1:
				p = path.Join(path.Dir(q.Path), path.Base(p))
			case 2:
				p = path.Dir(q.Path)
			}
			if p != "/" {
				probes = append(probes, thing{p, r.IntN(2) == 0})
			}
		}
		if err := checkShown(t, q, keys[r.IntN(len(keys))], probes, means); err != nil {
			return err
		}
	}
	return nil
}

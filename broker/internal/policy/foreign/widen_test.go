package foreign

import (
	"math/rand"
	"net/netip"
	"strings"
	"testing"

	"sbx.example/sbx/broker/internal/policy"
)

// TestExportOpensNoMore: whatever rules two scopes have, what comes back from an export allows no more than they do.
func TestExportOpensNoMore(t *testing.T) {
	vars := policy.Vars{Project: "/home/u/proj"} // without a home there are few secrets to carry along
	rnd := rand.New(rand.NewSource(1))
	patterns := []string{"/a/**", "/a/b/**", "/a/b/c/**", "/a/*/c/**", "/**/c/**", "$PROJECT/**", "$PROJECT/x/**",
		"/a/b/c"}
	word := func(list ...string) string { return list[rnd.Intn(len(list))] }
	hosts := []string{"a.b", "*.b", "c.b", "*", "*.b:443", "a.b:443", "10.0.0.1", "10.0.0.0/8"}
	configs := []string{"", "[network]\nallow = true\n", "[network]\nhosts = [\"a.b\", \"*.c.b\", \"10.0.0.1\"]\n"}
	allowed := 0
	for range 150 {
		texts := [2]string{}
		for i := range texts {
			for range rnd.Intn(4) {
				d, p := word("allow", "allow", "ask", "deny"), word(patterns...)
				if p == "/a/b/c" { // alone: other tools have no word for it
					d = "deny"
				}
				texts[i] += d + " " + word("read", "write") + " " + p + ";"
			}
			for range rnd.Intn(3) {
				texts[i] += word("allow", "ask", "deny") + " connect " + word(hosts...) + ";"
			}
		}
		e, user := inForceWith(t, vars, word(configs...), ruleFile(texts[0]))
		_, project := inForceWith(t, vars, "", ruleFile(texts[1]))
		store := user.Replace(policy.ScopeProject, project.Rules())
		store.ProjectTrusted = true
		for _, format := range Exports()[1:] {
			text, _, err := Export(format, e, store, nil)
			if err != nil {
				t.Fatal(err)
			}
			im, err := Import(format, []byte(text), vars)
			if err != nil {
				t.Fatal(err)
			}
			after, back := inForceWith(t, vars, im.ConfigTOML(), im.PolicyTOML())
			for _, q := range queries() {
				inWorkspace := format == "cursor" && strings.HasPrefix(q.Path, "/home/u/proj/") // where Cursor can close nothing
				if inWorkspace || !opens(after, back, q) {
					continue
				}
				if allowed++; !opens(e, store, q) {
					t.Fatalf("%s: %v is allowed by what comes back of user %q project %q %v\n%s\n%s", format, q, texts[0], texts[1],
						e.Network, text, im.PolicyTOML())
				}
			}
		}
	}
	if allowed < 100 {
		t.Errorf("only %d accesses were allowed: the test shows nothing", allowed)
	}
}

// TestClaudeRefusalsCountFirst: of an import, nothing is allowed that any of the entries alone refuses or asks about.
func TestClaudeRefusalsCountFirst(t *testing.T) {
	vars := policy.Vars{Project: "/a"}
	rnd := rand.New(rand.NewSource(1))
	args := []string{"//a/**", "//a/b/**", "//a/*/c/**", "c", "b/c", "./b/**", "**/c/**", "q", "//a/b/c", "/z/c"}
	allowed := 0
	for range 300 {
		lists := map[string][]string{}
		var alone []policy.Store
		for range 1 + rnd.Intn(5) {
			d := []string{"allow", "allow", "ask", "deny"}[rnd.Intn(4)]
			entry := []string{"Read(", "Edit("}[rnd.Intn(2)] + args[rnd.Intn(len(args))] + ")"
			lists[d] = append(lists[d], entry)
			_, s := claudeRules(t, vars, map[string][]string{d: {entry}})
			alone = append(alone, s)
		}
		text, all := claudeRules(t, vars, lists)
		for _, q := range queries()[:16] {
			if r, ok := all.Match(q); !ok || r.Decision != policy.Allow {
				continue
			}
			allowed++
			for _, s := range alone {
				if r, ok := s.Match(q); ok && r.Decision != policy.Allow {
					t.Fatalf("%s of %s is allowed, which %v refuses\n%s", q.Access, q.Path, r, text)
				}
			}
		}
	}
	if allowed < 100 {
		t.Errorf("only %d accesses were allowed: the test shows nothing", allowed)
	}
}

func claudeRules(t *testing.T, vars policy.Vars, lists map[string][]string) (string, policy.Store) {
	text, err := encodeJSON(map[string]any{"permissions": lists})
	if err != nil {
		t.Fatal(err)
	}
	im, err := Import("claude", []byte(text), vars)
	if err != nil {
		t.Fatal(err)
	}
	return text, policy.Store{}.Replace(policy.ScopeUser, im.Rules)
}

func queries() []policy.Query {
	var out []policy.Query
	for _, p := range []string{"/a/q", "/a/b/q", "/a/b/c", "/a/b/c/q", "/a/z/c/q", "/home/u/proj/q", "/home/u/proj/x/q",
		"/z/q"} {
		out = append(out, policy.Query{Kind: policy.KindPath, Path: p, Access: policy.Read},
			policy.Query{Kind: policy.KindPath, Path: p, Access: policy.Write})
	}
	for _, name := range []string{"a.b", "c.b", "x.c.b", "z.z", "10.0.0.1", "10.2.0.1"} {
		q := policy.Query{Kind: policy.KindHost, Access: policy.Connect}
		if addr, err := netip.ParseAddr(name); err == nil {
			q.Host.Addr = addr
		} else {
			q.Host.Name = name
		}
		for _, q.Port = range []int{80, 443} {
			out = append(out, q)
		}
	}
	return out
}

// opens says whether an access is granted by a rule, or by a setting where no rule is about it.
func opens(e policy.Effective, s policy.Store, q policy.Query) bool {
	if r, ok := s.Match(q); ok {
		return r.Decision == policy.Allow
	}
	if q.Kind == policy.KindHost {
		reach, hosts := e.Reach(false)
		for _, h := range hosts {
			r, err := policy.NewRule(policy.Rule{Kind: policy.KindHost, Pattern: h, Decision: policy.Allow}, e.Vars)
			if err == nil && r.Host().Match(q.Host, q.Port, false) {
				return true
			}
		}
		return reach == policy.AllHosts
	}
	for _, dir := range e.Writable() {
		if strings.HasPrefix(q.Path, dir+"/") {
			return true
		}
	}
	return false
}

package foreign

import (
	"math/rand"
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
	paths := []string{"/a/q", "/a/b/q", "/a/b/c", "/a/b/c/q", "/a/z/c/q", "/home/u/proj/q", "/home/u/proj/x/q", "/z/q"}
	word := func(list ...string) string { return list[rnd.Intn(len(list))] }
	allowed := 0
	for range 40 {
		texts := [2]string{}
		for i := range texts {
			for range rnd.Intn(4) {
				d, p := word("allow", "allow", "ask", "deny"), word(patterns...)
				if p == "/a/b/c" { // alone: other tools have no word for it
					d = "deny"
				}
				texts[i] += d + " " + word("read", "write") + " " + p + ";"
			}
		}
		e, user := inForceWith(t, vars, "", ruleFile(texts[0]))
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
			for _, p := range paths {
				for _, a := range []policy.Access{policy.Read, policy.Write} {
					inWorkspace := format == "cursor" && strings.HasPrefix(p, "/home/u/proj/") // where Cursor can close nothing
					if inWorkspace || !opens(after, back, p, a) {
						continue
					}
					if allowed++; !opens(e, store, p, a) {
						t.Fatalf("%s: %s of %s is allowed by what comes back of user %q project %q\n%s\n%s", format, a, p, texts[0],
							texts[1], text, im.PolicyTOML())
					}
				}
			}
		}
	}
	if allowed < 100 {
		t.Errorf("only %d accesses were allowed: the test shows nothing", allowed)
	}
}

// opens says whether an access is granted by a rule, or by fs.writable where no rule is about it.
func opens(e policy.Effective, s policy.Store, path string, a policy.Access) bool {
	if r, ok := s.Match(policy.Query{Kind: policy.KindPath, Path: path, Access: a}); ok {
		return r.Decision == policy.Allow
	}
	for _, dir := range e.Writable() {
		if len(path) > len(dir) && path[:len(dir)+1] == dir+"/" {
			return true
		}
	}
	return false
}

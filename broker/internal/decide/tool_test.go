package decide

import (
	"strings"
	"testing"
	"time"

	"sbx.example/sbx/broker/internal/policy"
)

// TestToolCall: no two lists of arguments are one name, and each is a name that can be asked about.
func TestToolCall(t *testing.T) {
	seen := map[string]string{}
	for _, words := range []string{"", "'(no arguments)'", ".", "..", "a/b", `'a|b'`, `'a%7Cb'`, "%7C", "%257C", "a b",
		"'a b'", "a/../b", "//", "a/", `'a\'`, `$'\x0a'`, "''"} {
		a := ToolCall(7, "push", words, false)
		if before, ok := seen[a.Path]; ok {
			t.Errorf("%s and %s are both %s", before, words, a.Path)
		}
		seen[a.Path] = words
		if v := Decide(a, Env{Now: time.Now()}); v.Decision != AskHuman || v.Scope != File {
			t.Errorf("%s: %+v, want a question", a.Path, v)
		}
	}
}

// TestLongWords: a name is of a bounded length however long the words are, and still no two texts have the same.
func TestLongWords(t *testing.T) {
	long := strings.Repeat("x", maxWords)
	if a, b := Below("/s", long+"a"), Below("/s", long+"b"); a == b || len(a) > maxWords+100 || Whole(long+"a") {
		t.Errorf("%d bytes, the same: %t", len(a), a == b)
	}
	if a := Below("/s", long); a != "/s/"+long || !Whole(long) {
		t.Errorf("%d bytes for %d", len(a), len(long))
	}
	if a := Below("/s", long+"a"); Below("/s", strings.TrimPrefix(a, "/s/")) == a {
		t.Error("words can be written as the name of others")
	}
}

// TestCallOnHost: nothing but an answer to this call lets it be carried out.
func TestCallOnHost(t *testing.T) {
	allow, err := policy.NewRule(policy.Rule{Kind: policy.KindSocket, Pattern: "/tool/**", Decision: policy.Allow},
		policy.Vars{})
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	env := Env{Now: now, Policy: policy.Store{}.With(policy.ScopeUser, allow).Match, Grants: NewGrants()}
	for _, onHost := range []bool{false, true} {
		a := ToolCall(7, "push", "x", onHost)
		want := map[bool]Decision{false: Allow, true: AskHuman}[onHost]
		if v := Decide(a, env); v.Decision != want {
			t.Errorf("on the host %t: %v with a rule, want %v", onHost, v.Decision, want)
		}
		none := env
		none.NoPrompt, none.Unasked = true, Allow
		if want = map[bool]Decision{false: Allow, true: Deny}[onHost]; Decide(a, none).Decision != want {
			t.Errorf("on the host %t: %v with --prompt allow, want %v", onHost, Decide(a, none).Decision, want)
		}
		none.Static = true
		if want = map[bool]Decision{false: Allow, true: Deny}[onHost]; Decide(a, none).Decision != want {
			t.Errorf("on the host %t: %v in static mode, want %v", onHost, Decide(a, none).Decision, want)
		}
		q := Question{Path: a.Path, Op: a.Op}
		for _, ans := range []Answer{{Allow: true, Life: Session}, {Allow: true, Life: Forever}, {Allow: true, Scope: Tree},
			{Allow: true, Life: Hour}} {
			if _, err := Means(&q, ans, now); (err != nil) != onHost {
				t.Errorf("on the host %t: %+v means %v", onHost, ans, err)
			}
		}
		c, err := Means(&q, Answer{Allow: true}, now)
		if err != nil {
			t.Fatal(err)
		}
		if v := c.Answer.Verdict(a, Env{Now: now}); v.Decision != Allow || v.Life != LifeOnce {
			t.Errorf("on the host %t: allowed once it is %+v", onHost, v)
		}
		if _, err := Means(&q, Answer{Life: Session}, now); err != nil {
			t.Errorf("on the host %t: a no for the session: %v", onHost, err)
		}
	}
}

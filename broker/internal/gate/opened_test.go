//go:build linux

package gate

import (
	"os"
	"path/filepath"
	"testing"

	"sbx.example/sbx/broker/internal/arbiter"
	"sbx.example/sbx/broker/internal/decide"
	"sbx.example/sbx/broker/internal/gate/grants"
	"sbx.example/sbx/broker/internal/guard"
	"sbx.example/sbx/broker/internal/host"
	"sbx.example/sbx/broker/internal/planner"
	"sbx.example/sbx/broker/internal/policy"
	"sbx.example/sbx/broker/internal/request"
	"sbx.example/sbx/broker/plan"
)

// TestOpenedBeforeItIsMounted: who waited for a yes about a tree can make names there, and end, while it is mounted. So
// it is noted with the yes.
func TestOpenedBeforeItIsMounted(t *testing.T) {
	for life, want := range map[decide.Life]bool{decide.Session: true, decide.LifeOnce: false} {
		top := t.TempDir()
		file := filepath.Join(top, "f")
		if err := os.WriteFile(file, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		in := &planner.Input{}
		in.Facts.Foreign = &host.Foreign{}
		rule := policy.Rule{Decision: policy.Allow}
		env := decide.Env{Policy: func(policy.Query) (policy.Rule, bool) { return rule, true }}
		a, noted := arbiter.New(arbiter.Options{Env: env}), false
		g := NewFileGate(&Session{In: in, Arbiter: a, Names: request.NewNameGate(in),
			View:   NewView(&plan.Plan{}, nil, nil, nil),
			Opened: func(dir string, _ *guard.Judge) { noted = noted || dir == top }})
		g.plan = &plan.Plan{}
		v := decide.Verdict{Decision: decide.Allow, Path: file, Life: life}
		if want {
			v.Scope, v.Path = decide.Tree, top
		}
		got := g.granting(grants.Request{Op: "write", Path: file}, true, v)
		if got.Path != v.Path || got.Mode != grants.RW || noted != want {
			t.Errorf("%s: %+v, noted: %v, want %v", life, got, noted, want)
		}
		a.Close()
	}
}

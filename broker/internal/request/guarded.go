package request

import (
	"path"
	"strings"

	"sbx.example/sbx/broker/internal/guard"
	"sbx.example/sbx/broker/internal/host"
	"sbx.example/sbx/broker/internal/planner"
	"sbx.example/sbx/broker/internal/policy"
	"sbx.example/sbx/broker/internal/policy/pathname"
	"sbx.example/sbx/broker/plan"
)

// GuardJudge is the judge of a guarded directory; the first rule that matches a name decides. What the plan
// hides in it was resolved by the planner: links, other mounts and hard links of secrets included.
func GuardJudge(in *planner.Input, m *plan.Mount) (*guard.Judge, error) {
	options := []guard.Option{guard.HideSecrets}
	if foldsCase(m.Target) {
		options = append(options, guard.FoldAll)
	}
	return guard.NewJudge(GuardRules(in, m), options...)
}

// GuardRules are the rules of that judge.
func GuardRules(in *planner.Input, m *plan.Mount) []guard.Rule {
	dir := m.Target
	var out []guard.Rule
	for _, h := range m.Hide {
		out = append(out, guard.Rule{Pattern: guard.Literal(string(h)), Action: guard.Hide})
	}
	var shown []guard.Rule
	for _, g := range in.Grants {
		rel, ok := strings.CutPrefix(path.Clean(g.Path), dir+"/")
		if !ok || !g.Explicit && g.Path != in.Project {
			continue
		}
		r := guard.Rule{Pattern: guard.Literal(rel), Action: guard.Allow}
		if g.Mode == planner.Write {
			out = append(out, r)
		} else {
			shown = append(shown, r)
		}
	}
	out = append(out, in.ReferredIn(dir)...)
	return append(append(out, guard.BuiltIn()...), shown...)
}

// GuardedTop is the operation of the outermost guarded directory that a path lies in, or is; nil if there is none.
func GuardedTop(p *plan.Plan, name string) (top *plan.Mount) {
	for i := range p.Mounts {
		m := &p.Mounts[i]
		guards := m.Kind == plan.Judged || m.Kind == plan.Fuse && m.Target != "/"
		if guards && host.Within(name, m.Target) && (top == nil || len(m.Target) < len(top.Target)) {
			top = m
		}
	}
	return top
}

// SocketRules let the sockets be connected to that the command line grants by name.
func SocketRules(in *planner.Input) []policy.Rule {
	var out []policy.Rule
	for _, g := range in.Grants {
		if !g.Socket {
			continue
		}
		r, err := policy.NewRule(policy.Rule{Kind: policy.KindSocket, Pattern: pathname.Escape(g.Path),
			Decision: policy.Allow, Reason: g.Why}, policy.Vars{})
		if err == nil {
			out = append(out, r)
		}
	}
	return out
}

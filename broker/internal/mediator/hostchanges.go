//go:build linux

package mediator

import (
	"strings"
	"sync"

	"sbx.example/sbx/broker/internal/agent"
	"sbx.example/sbx/broker/internal/child"
	"sbx.example/sbx/broker/internal/gate/names"
	"sbx.example/sbx/broker/plan"
)

// hostChanges has an agent do again, in what is served, what the host has done there, so that who watches it inside
// hears of it. It is an agent of its own, because a grant must not wait for it.
type hostChanges struct {
	mu    sync.Mutex
	agent *agent.Agent
	stood bool // somebody may watch
	over  bool // nobody does any more
}

// standing makes the agent, which is started by the first thing that happens. The namespaces are the gate's to take.
func (r *hostChanges) standing(c *child.Child) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.stood = true
	r.agent = newAgent(c)
}

func (r *hostChanges) end() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.over = true
	if r.agent != nil {
		r.agent.Close()
	}
}

// in returns who repeats in a file system that is mounted at root.
func (r *hostChanges) in(root string) names.Repeater {
	return func(g names.Repeat) error {
		r.mu.Lock()
		a, stood := r.agent, r.stood
		r.mu.Unlock()
		switch {
		case !stood:
			return nil
		case a == nil:
			return agent.ErrNoAgent
		}
		err := a.Repeat(agent.Repeat{Root: root, What: whats[g.What], Type: g.Type, Dir: g.Dir, Name: g.Name, ToDir: g.ToDir,
			ToName: g.ToName})
		r.mu.Lock()
		defer r.mu.Unlock()
		if r.over {
			return nil
		}
		return err
	}
}

// covered are the directories of a file system mounted at root on which the plan mounts something else.
func covered(p *plan.Plan, root string) map[string]bool {
	out := map[string]bool{}
	for i := range p.Mounts {
		if rel, ok := strings.CutPrefix(p.Mounts[i].Target, root+"/"); ok {
			out["/"+rel] = true
		}
	}
	return out
}

// whats are the happenings as the agent calls them.
var whats = [...]agent.What{names.Made: agent.Made, names.Removed: agent.Removed, names.Moved: agent.Moved,
	names.Modified: agent.Modified, names.Attributes: agent.Changed, names.Written: agent.Written}

// Warner warns of each line that is written to it.
type Warner func(string)

func (w Warner) Write(b []byte) (int, error) {
	w(strings.TrimSuffix(string(b), "\n"))
	return len(b), nil
}

//go:build linux

package child

import (
	"os"
	"sync"

	"sbx.example/sbx/broker/internal/netns"
	"sbx.example/sbx/broker/plan"
)

// Hooks are called while the child builds the sandbox. Each may be nil.
type Hooks struct {
	// Cgroup is the descriptor of the control group that process 1 begins in, or 0.
	Cgroup int
	// Cloned is given process 1 while it waits for its plan; its error ends it.
	Cloned func(pid int) error
	// Outer is bubblewrap's process, which is process 1's parent to the end; 0: it has made none.
	Outer int
	// Building is called once, soon after the clone, perhaps by another goroutine. It must not wait for the child. The
	// program is started when it has returned; its error ends the child.
	Building func(*Child) error
	// AfterStart is called once when the program has run for a moment (startTakes).
	AfterStart func()
	// Fuse is given the descriptor of a FUSE file system of the plan, in the plan's order, and must
	// have it served when it returns, or looked after: the child's next step may walk through it. The
	// child's own requests, while it builds, must never wait.
	Fuse func(c *Child, m *plan.Mount, fd int) error
	// Tree is given the root of a tree of the plan that the broker alone writes, in the plan's order.
	Tree func(m *plan.Mount, root *os.File)
	// Network is what a plan with JoinNet enters.
	Network *netns.Network
	// Maps writes the identity maps of process 1 where the plan has subordinate ids.
	Maps func(pid int) error
	// Folder is what the plan's mounts need on the host.
	Folder Folder
	// Early is what was begun before the plan was known.
	Early Early
	// Remember says that the next run with the same arguments may begin with this set-up; see Early.
	Remember bool
}

func (h Hooks) building(c *Child) error {
	if h.Building == nil {
		return nil
	}
	return h.Building(c)
}

// build calls hooks.Building, and returns what waits for its end. On a served root process 1 waits for the answers of
// the calling goroutine meanwhile, so another one calls the hook.
func (c *Child) build(hooks Hooks) (built func() error, err error) {
	if c.root == nil {
		return func() error { return nil }, hooks.building(c)
	}
	done := make(chan error, 1)
	go func() { done <- hooks.building(c) }()
	return sync.OnceValue(func() error { return <-done }), nil
}

//go:build linux

package mediator

import (
	"os"
	"sync"

	"golang.org/x/sys/unix"

	"sbx.example/sbx/broker/internal/agent"
	"sbx.example/sbx/broker/internal/child"
	"sbx.example/sbx/broker/plan"
)

// lastAgent ends what is served when the broker was killed. It is started before the kernel is first told to forget
// something: only whoever tells it so may hold up his own end.
type lastAgent struct {
	mu    sync.Mutex
	agent *agent.Agent
	roots []string // of what is served
	begun bool
}

func (l *lastAgent) standing(c *child.Child) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.agent = newAgent(c)
}

// begin starts it. Without it only what is killed is not ended.
func (l *lastAgent) begin() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.begun || l.agent == nil {
		return
	}
	l.begun = true
	_ = l.agent.Outlive(l.roots)
}

func (l *lastAgent) end() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.agent != nil {
		l.agent.Close()
		l.agent = nil
	}
}

// Serves takes in where a file system is mounted that is served, and returns gatefs.Options.Notifying for it.
func (md *Mediator) Serves(root string) func() {
	md.last.mu.Lock()
	defer md.last.mu.Unlock()
	md.last.roots = append(md.last.roots, root)
	return md.last.begin
}

// newAgent is nil where there are no namespaces to enter.
func newAgent(c *child.Child) *agent.Agent {
	var own [2]*os.File
	for i, role := range [...]plan.FdRole{plan.FdUserNS, plan.FdMountNS} {
		f := c.Fds[role]
		if f == nil {
			return nil
		}
		fd, err := unix.FcntlInt(f.Fd(), unix.F_DUPFD_CLOEXEC, 3)
		if err != nil {
			return nil
		}
		own[i] = os.NewFile(uintptr(fd), f.Name())
	}
	return agent.New(own[0], own[1])
}

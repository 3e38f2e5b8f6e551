package live

import (
	"os"
	"strings"
	"sync"

	"golang.org/x/sys/unix"

	"sbx/broker/internal/agent"
	"sbx/broker/internal/child"
	"sbx/broker/internal/gate/gatefs"
	"sbx/broker/plan"
)

// repeats has an agent do again, in what is served, what the host has done there. It is an agent of its own, because a
// grant must not wait for it.
type repeats struct {
	mu    sync.Mutex
	agent *agent.Agent
	over  bool // nobody watches any more
}

// standing makes the agent, which is started by the first thing that happens. The namespaces are the gate's to take.
func (r *repeats) standing(c *child.Child) {
	var own [2]*os.File
	for i, role := range [...]plan.FdRole{plan.FdUserNS, plan.FdMountNS} {
		f := c.Fds[role]
		if f == nil {
			return
		}
		fd, err := unix.FcntlInt(f.Fd(), unix.F_DUPFD_CLOEXEC, 3)
		if err != nil {
			return
		}
		own[i] = os.NewFile(uintptr(fd), f.Name())
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.agent = agent.New(own[0], own[1])
}

func (r *repeats) end() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.over = true
	if r.agent != nil {
		r.agent.Close()
	}
}

// in returns who repeats in a file system that is mounted at root.
func (r *repeats) in(root string) gatefs.Repeater {
	return func(g gatefs.Repeat) error {
		r.mu.Lock()
		a := r.agent
		r.mu.Unlock()
		if a == nil {
			return agent.ErrNoAgent
		}
		err := a.Repeat(agent.Repeat{Root: root, What: whatOf(g), Dir: g.Dir, Name: g.Name, ToDir: g.ToDir, ToName: g.ToName})
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

// whatOf words a happening for the agent.
func whatOf(r gatefs.Repeat) agent.What {
	switch r.What {
	case gatefs.Made:
		switch r.Type {
		case unix.S_IFDIR:
			return agent.MadeDir
		case unix.S_IFLNK:
			return agent.MadeLink
		case unix.S_IFIFO:
			return agent.MadeFifo
		case unix.S_IFSOCK:
			return agent.MadeSocket
		}
		return agent.Made
	case gatefs.Removed:
		if r.Type == unix.S_IFDIR {
			return agent.RemovedDir
		}
		return agent.Removed
	case gatefs.Moved:
		return agent.Moved
	case gatefs.Attributes:
		return agent.Changed
	case gatefs.Written:
		return agent.Written
	}
	return agent.Modified
}

// warner warns of each line that is written to it.
type warner func(string)

func (w warner) Write(b []byte) (int, error) {
	w(strings.TrimSuffix(string(b), "\n"))
	return len(b), nil
}

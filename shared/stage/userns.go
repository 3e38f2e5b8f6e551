package stage

import (
	"fmt"
	"strings"

	"golang.org/x/sys/unix"

	"sbx/shared/plan"
)

// userNS is what only a set-up in a user namespace of its own does: identity maps, a clock, what the broker serves. The helper's
// program holds none of it: there nothing makes a value of inUserNS, so the linker leaves these methods out, and a plan that needs
// them, which the helper's table refuses, would end with an error here as well.
type userNS interface {
	user(c *compiler)                             // right after process 1 is on its own
	served(c *compiler) error                     // FUSE file systems, before their places are there
	serve(c *compiler, m *plan.Mount, rel string) // one of them, at its place
	root(c *compiler)                             // the root's
	listed(c *compiler)                           // when the root is there
	shared(c *compiler)                           // when it is the only one
	mounted(c *compiler)                          // when all is mounted
	greeted(t *tape, p *plan.Plan)                // before the program starts
}

// inUserNS has what the tape makes on the host itself, if that is not there yet.
type inUserNS struct{ folder Folder }

func (n inUserNS) user(c *compiler) {
	c.identity(c.p.Identity.HasRanges())
	c.makeFolder(n.folder)
	c.makeGate()
}

func (inUserNS) served(c *compiler) error {
	for i := range c.p.Mounts {
		if m := &c.p.Mounts[i]; m.Kind == plan.Fuse && i > 0 {
			if c.fuses == maxFuse {
				return fmt.Errorf("more than %d FUSE file systems", maxFuse)
			}
			c.t.at("making fuse", string(m.Target))
			c.makeFuse(m)
		}
	}
	c.fuses = 0
	return nil
}

func (inUserNS) serve(c *compiler, m *plan.Mount, rel string) { c.fuse(m, rel) }
func (inUserNS) root(c *compiler)                             { c.gate() }
func (inUserNS) listed(c *compiler)                           { c.populate() }
func (inUserNS) shared(c *compiler)                           { c.share() }
func (inUserNS) mounted(c *compiler)                          { c.delegate() }
func (inUserNS) greeted(t *tape, p *plan.Plan)                { t.greet(p) }

// delegate lets the program have control groups below its own: process 1 leaves the topmost of them, which can hand down controllers only
// without processes. The namespace began there, so what lies above can be neither seen nor moved to.
func (c *compiler) delegate() {
	if len(c.p.Delegated) == 0 {
		return
	}
	rel := strings.TrimPrefix(plan.CgroupPlace, "/")
	c.writeFile(rel+"/"+plan.CgroupLeaf+"/cgroup.procs", "0")
	c.writeFile(rel+"/cgroup.subtree_control", "+"+strings.Join(c.p.Delegated, " +"))
}

// clock makes a time namespace. Its offsets take CAP_SYS_TIME.
func (c *compiler) clock() {
	c.t.at("making a time namespace", "")
	c.t.call(unix.SYS_UNSHARE, unix.CLONE_NEWTIME)
	off := c.p.Namespaces.TimeOffset
	c.writeFile("/proc/self/timens_offsets", fmt.Sprintf("monotonic %d 0\nboottime %d 0\n", off, off))
}

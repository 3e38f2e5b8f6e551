//go:build linux

package cli

import (
	"context"
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"sbx.example/sbx/broker/internal/agent"
	"sbx.example/sbx/broker/internal/child"
	"sbx.example/sbx/broker/internal/gate"
	"sbx.example/sbx/broker/internal/gate/gatefs"
	"sbx.example/sbx/broker/internal/gate/grants"
	"sbx.example/sbx/broker/internal/input"
	"sbx.example/sbx/broker/internal/launch"
	"sbx.example/sbx/broker/plan"
)

// tryGate runs the smallest sandbox whose root the broker serves, and has the agent mount in it: whether FUSE works in
// a user namespace is known only by doing it.
func (t *term) tryGate(sameName bool) finding {
	f := finding{What: "gate", OK: true,
		Says: "gatefs: what is not granted waits in a root that sbx serves; what is granted costs nothing"}
	if err := t.smallestGate(sameName); err != nil {
		f.OK, f.Loss = false, true
		f.Says = "notify: every call that names a path is looked at in dynamic sessions, since a root cannot be served (" +
			err.Error() + ")"
		f.Fix = "make /dev/fuse accessible (chmod 666, as distributions ship it) and allow FUSE in user namespaces " +
			"(kernel 4.18)"
	}
	return f
}

func (t *term) smallestGate(sameName bool) error {
	null, err := os.OpenFile("/dev/null", unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer null.Close()
	quiet := newTerm(t.Env, [3]*os.File{null, null, null})
	p, err := input.Smallest(quiet.Env, quiet.Std, true, nil)
	if err != nil {
		return err
	}
	if sameName { // see launch.Try
		p.Hostname = ""
	}
	var server *gatefs.Server
	b := &builder{}
	mounts := errors.New("the sandbox did not stand")
	res, err := launch.Run(context.Background(), p, launch.Options{Stdio: quiet.Std,
		Fuse: func(c *child.Child, _ *plan.Mount, fd int) (err error) {
			b.pid = c.PID
			server, err = gatefs.New(fd, gate.TreeOf(p.Gate), gatefs.Options{Owner: gatefs.Owner{UID: p.Identity.InsideUID,
				GID: p.Identity.InsideGID}, Agent: b, Walk: true})
			if err == nil {
				go server.Serve()
			}
			return err
		},
		Standing: func(r *launch.Running) {
			c := r.Child
			a := agent.New(c.Fds[plan.FdUserNS], c.Fds[plan.FdMountNS])
			delete(c.Fds, plan.FdUserNS)
			delete(c.Fds, plan.FdMountNS)
			mounts = a.Graft(agent.Graft{Source: "/usr", Target: "/usr", Access: plan.ReadOnly})
			a.Close()
		}})
	if server != nil {
		server.Stop()
	}
	switch {
	case err != nil:
		return err
	case mounts != nil:
		return fmt.Errorf("mounting in a running sandbox: %w", mounts)
	case res.Status != 0:
		return fmt.Errorf("true ended with status %d", res.Status)
	}
	return nil
}

// builder is process 1 as the only one whose requests never wait.
type builder struct{ pid int }

var errNoMounts = errors.New("nothing is mounted here")

func (b *builder) Is(pid int) bool                               { return pid == b.pid }
func (b *builder) Graft(string, grants.Mode, uint32, bool) error { return errNoMounts }
func (b *builder) Revoke(string) error                           { return errNoMounts }

//go:build linux

package mediator

import (
	"fmt"
	"os"
	"path"
	"strconv"

	"golang.org/x/sys/unix"

	"sbx.example/sbx/broker/internal/agent"
	"sbx.example/sbx/broker/internal/child"
	"sbx.example/sbx/broker/internal/gate/late"
	"sbx.example/sbx/broker/internal/gate/writes"
	"sbx.example/sbx/broker/internal/guard"
	"sbx.example/sbx/broker/internal/host"
	"sbx.example/sbx/broker/internal/planner"
	"sbx.example/sbx/broker/internal/secrets"
	"sbx.example/sbx/broker/plan"
)

// covers hides what the host makes under the names of secrets while a session runs: the agent mounts something over it.
type covers struct {
	agent func() (*agent.Agent, error)
	dir   string // of the session's: what is mounted
	watch *late.Watcher
	own   *agent.Agent // nil where the gate has one
	masks int          // configurations that were masked
}

// Watch begins to watch the judged trees, when the sandbox stands.
func (md *Mediator) Watch(c *child.Child) {
	if !md.Any() || !md.plan.Namespaces.User { // there nothing is covered later, which is a loss
		return
	}
	md.covers.dir = md.in.SessionDir + "/overlay/covers"
	if md.asker != nil {
		md.covers.agent = md.asker.Mounter()
	}
	if md.covers.agent == nil {
		own := agent.New(c.Fds[plan.FdUserNS], c.Fds[plan.FdMountNS])
		delete(c.Fds, plan.FdUserNS)
		delete(c.Fds, plan.FdMountNS)
		md.covers.own, md.covers.agent = own, func() (*agent.Agent, error) { return own, nil }
	}
	places := map[string]writes.Mounted{}
	for _, p := range md.places() {
		places[p.Path] = p.How
	}
	var trees []late.Tree
	add := func(dir string) {
		top, place, err := md.guardedAt(dir)
		if how, ok := places[dir]; err == nil && (!ok || how == writes.Native) {
			trees = append(trees, late.Tree{Path: md.plan.OnHost(dir), Granted: top, Place: place})
		}
	}
	for _, r := range md.roots {
		add(r.Path)
	}
	for p, how := range places {
		if how == writes.Native {
			add(p)
		}
	}
	var err error
	md.covers.watch, err = late.Watch(late.Options{Trees: trees, Secrets: secrets.New(host.FS{}, md.in.Own, md.in.GitDir),
		Making: &md.making, Sockets: &md.sockets,
		Skip:  func(dir string) bool { _, ok := places[md.plan.Inside(dir)]; return ok },
		Cover: md.cover, Uncover: md.uncover,
		Configs: md.in.Configs, Mask: md.masking(), Warn: md.warn})
	if err != nil {
		md.warn(err.Error() + ": what the host makes while the session runs is not hidden")
	}
}

// end ends the watch.
func (c *covers) end() {
	if c.watch != nil {
		c.watch.Close()
	}
	if c.own != nil {
		c.own.Close()
	}
}

// cover mounts a file or directory that nobody may read.
func (md *Mediator) cover(p string, dir bool) error {
	from, err := md.covers.source(dir)
	if err != nil {
		return err
	}
	return md.graft(from, p)
}

// graft mounts a file or directory of the session's over one of the host's, in the sandbox.
func (md *Mediator) graft(from, p string) error {
	a, err := md.covers.agent()
	if err != nil {
		return err
	}
	return a.Graft(agent.Graft{Source: from, Target: md.plan.Inside(p), Access: plan.ReadOnly, NoExec: true})
}

func (md *Mediator) uncover(p string) error {
	a, err := md.covers.agent()
	if err != nil {
		return err
	}
	return a.Ungraft(md.plan.Inside(p))
}

// source makes what is mounted, if it is not there.
func (c *covers) source(dir bool) (string, error) {
	if err := os.MkdirAll(c.dir, 0o700); err != nil {
		return "", fmt.Errorf("making what covers secrets: %w", err)
	}
	p := path.Join(c.dir, "file")
	var err error
	if dir {
		p = path.Join(c.dir, "dir")
		err = unix.Mkdir(p, 0)
	} else {
		err = unix.Mknod(p, unix.S_IFREG, 0)
	}
	if err != nil && err != unix.EEXIST {
		return "", fmt.Errorf("making what covers secrets: %w", err)
	}
	return p, nil
}

// mask is a configuration that is shown without its credentials.
type mask struct {
	file   guard.ID // the host's
	text   string
	mounts int
}

// masking returns what shows a configuration without its credentials, again whenever the host has changed it. A mount
// goes with the file that it stands on, and the host replaces that.
func (md *Mediator) masking() func(string) {
	shown := map[string]mask{}
	return func(p string) {
		for range maxMaskings {
			was := shown[p]
			now, ok := readConfig(p)
			if !ok || now.file == was.file && now.text == was.text {
				return
			}
			if len(guard.GitCredentials([]byte(now.text))) == 0 {
				for ; was.mounts > 0; was.mounts-- {
					_ = md.uncover(p) // it may have gone with the file
				}
				delete(shown, p)
				return
			}
			if err := md.mask(p, now.text); err != nil && !host.NotExist(err) {
				md.warn("hiding the credential that the host has put into " + p + ": " + err.Error())
			}
			now.mounts = was.mounts + 1
			shown[p] = now
		}
	}
}

// maxMaskings bounds how often a configuration is looked at again that changes all the time.
const maxMaskings = 8

// readConfig reads a configuration of the host's, following no link.
func readConfig(p string) (mask, bool) {
	st, text, err := host.PeekPlain(p, planner.MaxConfigSize)
	return mask{file: guard.ID{Dev: st.Dev, Ino: st.Ino, Born: st.Born}, text: string(text)}, err == nil
}

// mask shows a configuration without its credentials, or nothing of it where those cannot be taken out.
func (md *Mediator) mask(p, text string) error {
	shown, ok := guard.WithoutCredentials([]byte(text))
	if !ok {
		return md.cover(p, false)
	}
	c := &md.covers
	if err := os.MkdirAll(c.dir, 0o700); err != nil {
		return fmt.Errorf("making what is shown of a configuration: %w", err)
	}
	c.masks++
	from := path.Join(c.dir, "config-"+strconv.Itoa(c.masks))
	if err := os.WriteFile(from, shown, 0o444); err != nil {
		return fmt.Errorf("writing what is shown of a configuration: %w", err)
	}
	return md.graft(from, p)
}

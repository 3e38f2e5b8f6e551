package cli

import (
	"fmt"
	"os"
	"path"

	"golang.org/x/sys/unix"

	"sbx/broker/internal/gate/late"
	"sbx/broker/internal/gate/writes"
	"sbx/broker/internal/host"
	"sbx/broker/internal/secrets"
	"sbx/shared/plan"
	"sbx/shared/stage"
)

// covers hides what the host makes under the names of secrets while a session runs: the agent mounts something over it.
type covers struct {
	agent func() (*stage.Agent, error)
	dir   string // of the session's: what is mounted
	watch *late.Watcher
	own   *stage.Agent // nil where the gate has one
}

// standing begins to watch the judged trees, when the sandbox stands.
func (j *judged) standing(c *stage.Child, warn func(string)) {
	if !j.any() {
		return
	}
	j.covers.dir = j.in.SessionDir + "/overlay/covers"
	if a := j.asks.grounds(); a != nil {
		j.covers.agent = a.mounter
	} else {
		own := stage.NewAgent(c.Fds[plan.FdUserNS], c.Fds[plan.FdMountNS])
		delete(c.Fds, plan.FdUserNS)
		delete(c.Fds, plan.FdMountNS)
		j.covers.own, j.covers.agent = own, func() (*stage.Agent, error) { return own, nil }
	}
	places := map[string]writes.Mounted{}
	for _, p := range j.places() {
		places[p.Path] = p.How
	}
	var trees []late.Tree
	add := func(dir string) {
		top, place, err := guardedAt(j.in, j.plan, dir)
		if how, ok := places[dir]; err == nil && (!ok || how == writes.Native) {
			trees = append(trees, late.Tree{Path: dir, Granted: top, Place: place})
		}
	}
	for _, r := range j.roots {
		add(r.Path)
	}
	for p, how := range places {
		if how == writes.Native {
			add(p)
		}
	}
	var err error
	j.covers.watch, err = late.Watch(late.Options{Trees: trees, Secrets: secrets.New(host.FS{}, j.in.Own, j.in.GitDir), Making: &j.making,
		Skip: func(dir string) bool { _, ok := places[dir]; return ok }, Cover: j.covers.cover, Uncover: j.covers.uncover, Warn: warn})
	if err != nil {
		warn(err.Error() + ": what the host makes while the session runs is not hidden")
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
func (c *covers) cover(p string, dir bool) error {
	a, err := c.agent()
	if err != nil {
		return err
	}
	from, err := c.source(dir)
	if err != nil {
		return err
	}
	return a.Graft(stage.Graft{Source: from, Target: p, Access: plan.ReadOnly, NoExec: true})
}

func (c *covers) uncover(p string) error {
	a, err := c.agent()
	if err != nil {
		return err
	}
	return a.Ungraft(p)
}

// source makes what is mounted, if it is not there.
func (c *covers) source(dir bool) (string, error) {
	if err := os.MkdirAll(c.dir, 0o700); err != nil {
		return "", fmt.Errorf("making what covers secrets: %w", err)
	}
	p := path.Join(c.dir, "file")
	err := error(nil)
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

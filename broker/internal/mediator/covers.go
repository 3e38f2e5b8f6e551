//go:build linux

package mediator

import (
	"errors"
	"fmt"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"

	"golang.org/x/sys/unix"

	"sbx.example/sbx/broker/internal/agent"
	"sbx.example/sbx/broker/internal/child"
	"sbx.example/sbx/broker/internal/gate/late"
	"sbx.example/sbx/broker/internal/gate/names"
	"sbx.example/sbx/broker/internal/gate/writes"
	"sbx.example/sbx/broker/internal/guard"
	"sbx.example/sbx/broker/internal/host"
	"sbx.example/sbx/broker/internal/planner"
	"sbx.example/sbx/broker/internal/request"
	"sbx.example/sbx/broker/internal/secrets"
	"sbx.example/sbx/broker/plan"
)

// covers hides what the host makes under the names of secrets while a session runs: the agent mounts something over it.
type covers struct {
	agent func() (*agent.Agent, error)
	dir   string // of the session's: what is mounted
	watch *late.Watcher
	own   *agent.Agent // nil where the gate has one
	mu    sync.Mutex   // held while the watch begins, or a tree is added
	made  int          // files and directories in it
}

// Watch begins to watch what is mounted natively, when the sandbox stands.
func (md *Mediator) Watch(c *child.Child) {
	if md == nil || !md.plan.Namespaces.User { // there nothing is covered later, which is a loss
		return
	}
	md.follow()
	trees := append(md.judgedTrees(), md.readTrees()...)
	watched := len(trees) > 0 || len(md.files.mounts) > 0
	md.covers.dir = md.in.SessionDir + "/overlay/covers"
	if md.asker != nil {
		md.covers.agent = md.asker.Mounter()
	}
	if md.covers.agent == nil && watched {
		own := agent.New(c.Fds[plan.FdUserNS], c.Fds[plan.FdMountNS])
		delete(c.Fds, plan.FdUserNS)
		delete(c.Fds, plan.FdMountNS)
		md.covers.own, md.covers.agent = own, func() (*agent.Agent, error) { return own, nil }
	}
	if watched {
		md.watch(trees)
	}
}

// watch begins to watch trees.
func (md *Mediator) watch(trees []*late.Tree) {
	hidden, places := md.hidden(), md.placed()
	var err error
	md.covers.watch, err = late.Watch(late.Options{Trees: trees, Planned: md.Left.Began,
		Secrets: secrets.New(host.FS{}, md.in.Own, md.in.GitDir),
		Closed:  md.in.Facts.Foreign.Closed, Making: &md.making, Sockets: &md.sockets, Door: md.door, Linked: md.linked,
		Skip:   func(dir string) bool { _, ok := places[md.plan.Inside(dir)]; return ok },
		Hidden: func(p, granted string) bool { return hidden[md.plan.Inside(p)] || md.listed(p, granted) },
		Cover:  md.cover, Mounted: md.mounted,
		Files: slices.Concat(md.in.Configs, md.files.paths()), Changed: md.changed(), Warn: md.warn})
	if err != nil {
		md.warn(err.Error() + ": what the host makes while the session runs is not hidden")
	}
}

// listed says whether a wildcard of a list hides what the host has put into a tree that is only read: elsewhere a
// program may have made it.
func (md *Mediator) listed(p, granted string) bool {
	return md.Listed != nil && request.GuardedTop(md.plan, md.plan.Inside(granted)) == nil && md.Listed(p, granted)
}

// door says whether a socket was granted.
func (md *Mediator) door(p string) bool {
	return slices.ContainsFunc(md.in.Grants, func(g planner.Grant) bool { return g.Socket && g.Path == md.plan.Inside(p) })
}

// Shown has a directory watched that an answer has mounted for reading.
func (md *Mediator) Shown(dir string) {
	md.covers.mu.Lock()
	defer md.covers.mu.Unlock()
	t := md.readTree(dir, dir, 0)
	t.Stands = func() bool { return md.mounted(dir) == nil }
	switch {
	case md.covers.agent == nil:
	case md.covers.watch == nil:
		md.watch([]*late.Tree{t})
	default:
		md.covers.watch.Add(t)
	}
}

// placed are the places that are mounted on the judged trees.
func (md *Mediator) placed() map[string]writes.Mounted {
	places := map[string]writes.Mounted{}
	for _, p := range md.places {
		places[p.Path] = p.How
	}
	return places
}

// judgedTrees are what is native of them.
func (md *Mediator) judgedTrees() (trees []*late.Tree) {
	places := md.placed()
	add := func(dir string) {
		top, place, err := md.guardedAt(dir)
		if how, ok := places[dir]; err == nil && (!ok || how == writes.Native) {
			trees = append(trees, &late.Tree{Path: md.plan.OnHost(dir), Granted: top, Place: place})
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
	return trees
}

// readTrees are those that are only read.
func (md *Mediator) readTrees() (trees []*late.Tree) {
	if md.in.NoGuard || md.in.NoSecrets {
		return nil
	}
	shown := md.in.Shown()
	for i := range md.plan.Mounts {
		m := &md.plan.Mounts[i]
		st, err := md.in.FS.Lstat(m.Source)
		if m.Kind != plan.Bind || m.Access != plan.ReadOnly || m.Why == planner.NativeWhy || err != nil ||
			st.Type != host.Dir {
			continue
		}
		if top := shown(m.Source); top != "" {
			trees = append(trees, md.readTree(m.Source, top, md.in.Reach(top)))
		}
	}
	return trees
}

// readTree is a tree in which names are judged relative to top.
func (md *Mediator) readTree(dir, top string, most int) *late.Tree {
	judge, err := guard.NewJudge(guard.BuiltIn(), guard.HideSecrets)
	if err != nil {
		panic("BUG(sbx): the built-in rules are no rules: " + err.Error())
	}
	rel := strings.TrimPrefix(strings.TrimPrefix(dir, top), "/")
	return &late.Tree{Path: dir, Granted: top, Place: PlaceOf(judge, top, rel), Most: most}
}

// linked says whether a file in a directory that was granted is another name of a secret there, in what else is shown,
// or of a listed one.
func (md *Mediator) linked(p, granted string) bool {
	return md.names.Linked(p, granted, granted) || slices.ContainsFunc(md.tops(), func(top string) bool {
		return md.names.Linked(p, top, top)
	})
}

// shownTops are the trees that a plan shows and that are searched for secrets.
func (md *Mediator) shownTops() (tops []string) {
	shown := md.in.Shown()
	for i := range md.plan.Mounts {
		if top := shown(md.plan.Mounts[i].Source); top != "" && !slices.Contains(tops, top) {
			tops = append(tops, top)
		}
	}
	return tops
}

// hidden are the names inside that the plan hides in the trees.
func (md *Mediator) hidden() map[string]bool {
	out := map[string]bool{}
	for i := range md.plan.Mounts {
		for _, name := range md.plan.Mounts[i].Hide {
			out[path.Join(md.plan.Mounts[i].Target, name)] = true
		}
	}
	return out
}

// end ends the watch.
func (c *covers) end() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.watch != nil {
		c.watch.Close()
	}
	if c.own != nil {
		c.own.Close()
	}
}

// cover mounts a file or directory that nobody may read over the object on.
func (md *Mediator) cover(p string, dir bool, on guard.ID) (remove func(string) error, err error) {
	from, err := md.covers.source()
	if err != nil {
		return nil, err
	}
	if dir {
		err = unix.Mkdir(from, 0)
	} else {
		err = unix.Mknod(from, unix.S_IFREG, 0)
	}
	if err != nil {
		return nil, fmt.Errorf("making what covers secrets: %w", err)
	}
	l, err := md.graft(from, p, agent.Object{Dev: on.Dev, Ino: on.Ino})
	if err != nil {
		_ = os.Remove(from)
		return nil, err
	}
	return l.remove, nil
}

// mounted says whether something lies over a name inside.
func (md *Mediator) mounted(p string) error {
	a, err := md.covers.agent()
	if err != nil {
		return err
	}
	return a.Mounted(md.plan.Inside(p))
}

// source is the path of something that is to be mounted. Each mount shows another one, which tells them apart.
func (c *covers) source() (string, error) {
	if err := os.MkdirAll(c.dir, 0o700); err != nil {
		return "", fmt.Errorf("making what covers secrets: %w", err)
	}
	c.made++
	return path.Join(c.dir, strconv.Itoa(c.made)), nil
}

// lid is a file or directory of the session's that is mounted over one of the host's, in the sandbox.
type lid struct {
	md   *Mediator
	from string
	root agent.Object
}

// graft mounts one over the object on.
func (md *Mediator) graft(from, p string, on agent.Object) (*lid, error) {
	st, err := host.FS{}.Lstat(from)
	if err != nil {
		return nil, err
	}
	a, err := md.covers.agent()
	if err != nil {
		return nil, err
	}
	if err := a.Graft(agent.Graft{Source: from, Target: md.plan.Inside(p), Access: plan.ReadOnly, NoExec: true,
		On: &on}); err != nil {
		return nil, err
	}
	return &lid{md, from, agent.Object{Dev: st.Dev, Ino: st.Ino}}, nil
}

// remove unmounts it, if it is what is seen at a path.
func (l *lid) remove(p string) error {
	a, err := l.md.covers.agent()
	if err != nil {
		return err
	}
	if err := a.Ungraft(l.md.plan.Inside(p), &l.root); err != nil {
		return err
	}
	return os.Remove(l.from)
}

// mask is a configuration that is shown without its credentials.
type mask struct {
	file guard.ID // the host's
	text string
	lids []*lid // each on the one before
}

// masking returns what shows a configuration without its credentials, again whenever the host has changed it. A mount
// goes with the file that it stands on, and the host replaces that.
func (md *Mediator) masking() func(string) {
	shown := md.maskedAtStart()
	return func(p string) {
		id, err := names.IDAt(unix.AT_FDCWD, path.Dir(p))
		if err == nil && md.session.Own(id) {
			return // git inside has put there what is there
		}
		var failed error
		for range maxMaskings {
			was := shown[p]
			now, ok := readConfig(p)
			if !ok || now.file == was.file && now.text == was.text {
				return
			}
			if now.file == was.file {
				now.lids = was.lids
			}
			if len(guard.GitCredentials([]byte(now.text))) == 0 || md.made(p, []byte(now.text)) {
				for _, l := range slices.Backward(now.lids) {
					_ = l.remove(p)
				}
				now.lids = nil
			} else if l, err := md.mask(p, now); l != nil {
				failed, now.lids = nil, append(now.lids, l)
			} else if failed = err; errors.Is(err, unix.ESTALE) { // the host has replaced it meanwhile
				continue
			}
			if shown[p] = now; failed != nil {
				break
			}
		}
		if failed != nil && !host.NotExist(failed) {
			md.warn("hiding the credential that the host has put into " + p + ": " + failed.Error())
		}
	}
}

// changed returns what looks at a file that the host has changed or replaced.
func (md *Mediator) changed() func(string) {
	mask := md.masking()
	return func(p string) {
		if m := md.files.mounts[p]; m != nil {
			md.refresh(m)
		} else {
			mask(p)
		}
	}
}

// maskedAtStart are the configurations that the plan has masked.
func (md *Mediator) maskedAtStart() map[string]mask {
	shown := map[string]mask{}
	for _, m := range md.in.Masked {
		from := path.Join(md.in.SessionDir, "etc", m.Text.Name)
		st, err := host.FS{}.Lstat(from)
		if now, ok := readConfig(m.Path); ok && err == nil {
			shown[m.Path] = mask{file: now.file, lids: []*lid{{md, from, agent.Object{Dev: st.Dev, Ino: st.Ino}}}}
		}
	}
	return shown
}

// maxMaskings bounds how often a configuration is looked at again that changes all the time.
const maxMaskings = 8

// readConfig reads a configuration of the host's.
func readConfig(p string) (mask, bool) {
	st, text, err := host.PeekPlain(p, planner.MaxConfigSize)
	return mask{file: guard.ID{Dev: st.Dev, Ino: st.Ino, Born: st.Born}, text: string(text)}, err == nil
}

// mask shows a configuration without its credentials; where those cannot be taken out, nobody may read what is shown.
// It returns nil where something else is mounted, which shows nothing of the file either, or a server shows it so.
func (md *Mediator) mask(p string, m mask) (*lid, error) {
	shown, ok := guard.WithoutCredentials([]byte(m.text))
	from, err := md.covers.source()
	if err != nil {
		return nil, err
	}
	mode := os.FileMode(0)
	if ok {
		mode = 0o444
	}
	if err := os.WriteFile(from, shown, mode); err != nil {
		return nil, fmt.Errorf("writing what is shown of a configuration: %w", err)
	}
	l, err := md.graft(from, p, agent.Object{Dev: m.file.Dev, Ino: m.file.Ino})
	if n := len(m.lids); n > 0 && errors.Is(err, unix.ESTALE) {
		l, err = md.graft(from, p, m.lids[n-1].root)
	}
	if err != nil {
		_ = os.Remove(from)
	}
	if errors.Is(err, unix.ESTALE) && (md.mounted(p) == nil || md.isServed(p)) {
		return nil, nil
	}
	return l, err
}

// isServed says whether a path lies in a directory that this process serves, where it shows configurations without
// their credentials by itself.
func (md *Mediator) isServed(p string) bool {
	return slices.ContainsFunc(md.plan.Mounts, func(m plan.Mount) bool {
		return m.Kind == plan.Fuse && m.Target != "/" && host.Within(md.plan.Inside(p), m.Target)
	})
}

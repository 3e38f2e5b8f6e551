package planner

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"sbx.example/sbx/broker/internal/host"
	"sbx.example/sbx/broker/plan"
)

// Build computes the plan. The losses are what the plan could not give; an error is a *Refusal when
// the request itself is at fault.
func Build(in Input) (*plan.Plan, []Loss, error) {
	p, losses, _, err := BuildSealed(in)
	return p, losses, err
}

// Sealed is what must stay out of sight whatever is granted later. A plan does not say so: there, it is
// simply not mounted.
type Sealed struct {
	Paths []string     // canonical, with everything below; every name that hidden things were found under
	Files []host.Inode // secret files that have further names
}

// BuildSealed is Build for a sandbox that grows while it runs.
func BuildSealed(in Input) (*plan.Plan, []Loss, Sealed, error) {
	if err := in.direct(); err != nil {
		return nil, nil, Sealed{}, err
	}
	if err := in.inPlace(); err != nil {
		return nil, nil, Sealed{}, err
	}
	if !in.InPlace {
		in.layers()
	}
	v := newView(&in)
	p, losses, err := v.plan()
	if err != nil {
		return nil, nil, Sealed{}, err
	}
	s := Sealed{Paths: v.root.sealedNames("/")}
	for _, l := range v.linked {
		s.Files = append(s.Files, l.st.Inode())
	}
	return p, losses, s, nil
}

func (v *view) plan() (*plan.Plan, []Loss, error) {
	in := *v.in
	if err := v.collect(); err != nil {
		return nil, nil, err
	}
	mounts, err := v.build()
	if err != nil {
		return nil, nil, err
	}
	v.seenLater()
	proc, err := process(&in, mounts, v.hiddenAt(in.Dir))
	if err != nil {
		return nil, nil, err
	}
	mounts, moved, err := v.move(mounts, &proc)
	if err != nil {
		return nil, nil, err
	}
	var gate *plan.Gate
	if in.Only != nil {
		mounts = in.Only.restrict(mounts)
	}
	if in.Gate {
		mounts, gate = v.gate(mounts)
	}
	if in.Agent {
		mounts = in.landings(mounts)
	}
	p := &plan.Plan{
		Version:    plan.Version,
		Session:    in.Session,
		Hostname:   in.ownName(),
		Namespaces: in.namespaces(),
		Identity: plan.Identity{InsideUID: in.Facts.UID, OutsideUID: in.Facts.UID, InsideGID: in.Facts.GID,
			OutsideGID: in.Facts.GID},
		Loopback: !in.NoLoopback && !in.ShareNet && !in.JoinNet && !in.InPlace,
		Gate:     gate,
		Mounts:   mounts,
		Moved:    moved,
		Process:  proc,
		Limits:   in.Limits,
		Controls: in.Controls,
		Seccomp:  in.Seccomp,
		Stdio:    in.Stdio,
	}
	if in.MapRoot {
		p.Identity.InsideUID, p.Identity.InsideGID = 0, 0
	}
	if in.TTY {
		p.Fds = append(p.Fds, plan.FdPty)
	}
	if in.InPlace {
		v.keepGranted(p)
	} else if slices.ContainsFunc(mounts, func(m plan.Mount) bool { return m.Kind == plan.Judged }) {
		p.Seccomp = *in.Judging
	}
	if p.Seccomp.Notify {
		p.Fds = append(p.Fds, plan.FdSeccomp)
	}
	// For the agents: one covers secrets that appear later and follows files, one tells who watches what is served.
	if in.Gate || in.Agent || !in.InPlace && !in.Direct && slices.ContainsFunc(mounts, func(m plan.Mount) bool {
		return m.Kind == plan.Judged || m.Kind == plan.Fuse || in.Follows(&m)
	}) || p.Namespaces.User && len(v.trees) > 0 {
		p.Fds = append(p.Fds, plan.FdUserNS, plan.FdMountNS)
	}
	if in.OwnNames {
		p.Fds = append(p.Fds, plan.FdNamesUDP, plan.FdNamesTCP)
	}
	in.identify(p)
	v.losses = append(append(in.Losses, v.losses...), followNoLinks(p, &in)...)
	v.losses = append(v.losses, in.sameName()...)
	if err = v.finish(p); err != nil {
		return nil, nil, err
	}
	return p, v.losses, nil
}

// finish adds what follows from the whole plan, and checks that.
func (v *view) finish(p *plan.Plan) error {
	in := v.in
	if at := in.FS.Exchanged(); at != "" {
		return &Refusal{What: plan.Bytes(at).Quote() + " became a link while this run was planned",
			Hint: "another program does that, perhaps in another sandbox: end it, and start this run again"}
	}
	if !in.InPlace {
		v.losses = append(v.losses, addLandlock(p, in)...)
	}
	v.losses = append(v.losses, in.lostDecoys(p)...)
	unsaid, err := in.bwrapWords(p)
	if err != nil {
		return err
	}
	v.losses = append(v.losses, unsaid...)
	if err = p.Validate(); err != nil {
		return fmt.Errorf("BUG(sbx): planned something that is not valid: %w", err)
	}
	return nil
}

// namespaces are those that are made.
func (in *Input) namespaces() plan.Namespaces {
	if in.InPlace {
		return plan.Namespaces{}
	}
	return plan.Namespaces{User: !in.Direct, Net: !in.ShareNet, JoinNet: in.JoinNet, IPC: !in.ShareIPC, UTS: true,
		Cgroup: true, Time: in.TimeOffset != 0, TimeOffset: in.TimeOffset}
}

// networkFiles are the files in /etc that say how names are looked up.
func networkFiles() [3]string { return [3]string{"resolv.conf", "hosts", "nsswitch.conf"} }

// OwnNames are those of a sandbox without a network, where the host's order of looking up names does no harm.
func OwnNames(hostname string) []plan.Text {
	return []plan.Text{{Name: "resolv.conf", Text: "# this sandbox has no network: no name is known here\nnameserver " +
		plan.Resolver + "\n"}, Hosts(hostname)}
}

// Hosts is the sandbox's own: the host's knows the names of a network that is none of the sandbox's.
func Hosts(hostname string) plan.Text {
	return plan.Text{Name: "hosts", Text: "127.0.0.1\tlocalhost\n::1\tlocalhost ip6-localhost ip6-loopback\n127.0.1.1\t" +
		hostname + "\n"}
}

// ownName is the host name that is set inside, "" for none. The kernel takes 64 bytes (sethostname(2)).
func (in *Input) ownName() plan.Bytes {
	if in.SameName {
		return ""
	}
	return plan.Bytes(in.Hostname[:min(len(in.Hostname), 63)])
}

// sameName says that none can be set. The sandbox has a UTS namespace all the same, so nobody changes that of others.
func (in *Input) sameName() []Loss {
	if !in.SameName || in.InPlace {
		return nil
	}
	return []Loss{{What: "host name", Why: "the engine of this container refuses sethostname(2), so programs see the " +
		"container's", Fix: "a seccomp profile with sethostname, see docs/containers.md"}}
}

// collect fills the tree from grants and hides.
func (v *view) collect() error {
	in := v.in
	if !in.Placed {
		v.addSystem()
	}
	for _, h := range in.Hides {
		if err := v.addHide(h); err != nil {
			return err
		}
	}
	for _, g := range in.Grants {
		if g.Closes {
			continue // see addClosing
		}
		if err := v.checkGrant(g); err != nil {
			return err
		}
		if err := v.addGrant(g); err != nil {
			return err
		}
		if (in.Direct || in.NoLayers != "") && g.Mode == Overlay && !g.Own { // after what is wrong with it everywhere
			return in.noLayer(g)
		}
	}
	if err := v.search(); err != nil {
		return err
	}
	if err := v.addClosing(); err != nil {
		return err
	}
	v.reveal()
	v.maskCredentials()
	v.addCopies()
	if in.nests() {
		v.spare()
	}
	if in.Containers != nil {
		if err := v.containers(); err != nil {
			return err
		}
	}
	if in.JoinNet {
		for _, name := range networkFiles() {
			v.root.at("/etc/" + name).file = in.SessionDir + "/etc/" + name
		}
	} else if in.OwnNames {
		for _, f := range OwnNames(in.Hostname) {
			n := v.root.at("/etc/" + string(f.Name))
			n.file, n.text = in.SessionDir+"/etc/"+string(f.Name), f.Text
		}
	}
	return nil
}

// reserved places are the sandbox's own; a grant at or below them would undo that. Below /tmp and
// /run a grant is welcome: it appears there and nothing else does.
var reserved = [...]string{"/proc", "/dev", "/sys"}

func (v *view) checkGrant(g Grant) error {
	canon, err := v.in.checkPlace(&g)
	if err != nil {
		return err
	}
	return v.checkSecrets(g, canon)
}

// checkPlace says where a grant leads, or why nothing can be granted there: in either case without looking into it.
func (in *Input) checkPlace(g *Grant) (canon string, err error) {
	if strings.IndexByte(g.Path, 0) >= 0 || len(g.Path) > 4095 {
		return "", &Refusal{What: fmt.Sprintf("%s (%s): not a path", plan.Bytes(g.Path).Quote(), g.Why)}
	}
	canon, _, st, _ := host.Resolve(in.FS, g.Path)
	if canon == "/" && (g.Mode == Write || g.Mode == Scratch) {
		return "", &Refusal{What: fmt.Sprintf("/ (%s) cannot be writable", g.Why),
			Hint: "name the directory that the program should write"}
	}
	for _, r := range reserved {
		if canon != "" && host.Within(canon, r) {
			return "", &Refusal{What: fmt.Sprintf("%s (%s) is provided by the sandbox itself", plan.Bytes(g.Path).Quote(),
				g.Why)}
		}
	}
	if g.Explicit && !g.Socket && (st.Type == host.Socket || st.Type == host.Other) && canon != "" {
		if _, err := in.FS.Lstat(canon); err == nil {
			return "", &Refusal{What: fmt.Sprintf("%s (%s) is neither a file nor a directory", plan.Bytes(g.Path).Quote(),
				g.Why), Hint: "sockets are granted with --socket"}
		}
	}
	return canon, nil
}

// process finds the program and the place to start in.
func process(in *Input, mounts []plan.Mount, hidden bool) (plan.Process, error) {
	pr := plan.Process{Argv: plan.BytesOf(in.Argv), Env: plan.BytesOf(in.Env), Dir: "/", Umask: 0o022, TTY: in.TTY,
		AsPID1: in.AsPID1, Idle: in.Idle, OOMAdj: 300}
	if in.namespaces().User {
		pr.InotifyInstances, pr.InotifyWatches = in.InotifyInstances, in.InotifyWatches
	}
	if in.Dir != "" && (visible(mounts, in.Dir) || in.Gate && !hidden) {
		pr.Dir = plan.Bytes(in.Dir)
	}
	exe, err := LookPath(in, string(pr.Dir))
	if err != nil {
		return pr, err
	}
	pr.Path = plan.Bytes(exe)
	in.Machine.wrap(&pr, in.JoinNet)
	return pr, nil
}

// visible says whether p exists inside: the deepest operation at or above it is a tree, or it is a
// directory of the skeleton.
func visible(mounts []plan.Mount, p string) bool {
	var deepest *plan.Mount
	for i := range mounts {
		m := &mounts[i]
		if host.Within(p, m.Target) && m.Kind != plan.Protect && m.Kind != plan.Judged && (deepest == nil ||
			len(m.Target) >= len(deepest.Target)) {
			deepest = m
		}
	}
	if deepest == nil {
		return false
	}
	if deepest.Kind == plan.Bind || deepest.Kind == plan.Overlay || deepest.Kind == plan.Fuse {
		rel := strings.TrimPrefix(p, deepest.Target+"/")
		for _, h := range deepest.Hide {
			if host.Within(rel, string(h)) {
				return false
			}
		}
		return true
	}
	return deepest.Target == p
}

// Missing is a program that is not to be found; the exit status is 127, or 126 when it is there but
// cannot be executed.
type Missing struct {
	Name   string
	Status int
}

func (m *Missing) Error() string {
	if m.Status == 126 {
		return fmt.Sprintf("%s: cannot be executed", plan.Bytes(m.Name).Quote())
	}
	return fmt.Sprintf("%s: command not found", plan.Bytes(m.Name).Quote())
}

// LookPath finds Argv[0] as execvp(3) does, on the host's files. Whether it is visible inside is the
// kernel's to say.
func LookPath(in *Input, dir string) (string, error) {
	name := in.Argv[0]
	if name == "" {
		return "", &Missing{Name: name, Status: 127}
	}
	if strings.Contains(name, "/") {
		p := name
		if !path.IsAbs(p) {
			p = path.Join(dir, p)
		}
		return checkExec(in, path.Clean(p), name)
	}
	status := 127
	for _, d := range strings.Split(host.Lookup(in.Env, "PATH"), ":") {
		if !path.IsAbs(d) {
			continue
		}
		p := path.Join(d, name)
		_, _, st, err := host.Resolve(in.FS, p)
		if err != nil || st.Type != host.File {
			continue
		}
		if !in.FS.Access(p, unix.X_OK) {
			status = 126
			continue
		}
		return p, nil
	}
	return "", &Missing{Name: name, Status: status}
}

func checkExec(in *Input, p, name string) (string, error) {
	_, _, st, err := host.Resolve(in.FS, p)
	switch {
	case host.NotExist(err):
		return "", &Missing{Name: name, Status: 127}
	case err != nil || st.Type == host.Dir || !in.FS.Access(p, unix.X_OK):
		return "", &Missing{Name: name, Status: 126}
	}
	return p, nil
}

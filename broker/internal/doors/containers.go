//go:build linux

package doors

import (
	"net"
	"os"
	"sync"

	"golang.org/x/sys/unix"

	"sbx.example/sbx/broker/internal/child"
	"sbx.example/sbx/broker/internal/host"
	"sbx.example/sbx/broker/internal/idmap"
	"sbx.example/sbx/broker/internal/netns"
	"sbx.example/sbx/broker/internal/planner"
	"sbx.example/sbx/broker/internal/quoting"
	"sbx.example/sbx/broker/internal/request"
	"sbx.example/sbx/broker/internal/session"
	"sbx.example/sbx/broker/plan"
)

const (
	idsRelay = "ids" // in the session's folder
)

// containersConf is what an engine is told: there is no service manager and no journal inside, single control groups
// only where the session has one to divide, and the network of a container is that of the sandbox, which decides what
// can be reached. podman 4 makes a lock beside the definitions of networks, by default below ~/.config, which may not
// be there.
func containersConf(grouped bool) string {
	groups := "cgroups = \"disabled\"\ncgroupns = \"host\"\n"
	if grouped {
		groups = "cgroups = \"enabled\"\ncgroupns = \"private\"\n"
	}
	return `[containers]
netns = "host"
` + groups + `log_driver = "k8s-file"
default_sysctls = []
[network]
network_config_dir = "/tmp/.containers-networks"
[engine]
cgroup_manager = "cgroupfs"
events_logger = "file"
runtime = "crun"
`
}

// ownStore is where containers are kept where the usual place cannot be.
const ownStore = "/run/sbx/containers"

const storageConf = `[storage]
driver = "overlay"
rootless_storage_path = "/run/sbx/containers/storage"
`

// IDs hands the sandbox's user namespace to the server of maps, which begins before that is made.
type IDs struct {
	ids   idmap.Ids
	facts host.Facts
	ready chan struct{}
	once  sync.Once
	user  *os.File
}

// Containers lets rootless containers work inside.
func (d *Doors) Containers() error {
	s, in := d.Settings, d.In
	if !s.Features.Containers {
		return nil
	}
	if why, hint := d.noContainers(); why != "" {
		return &planner.Refusal{What: "--containers: " + why, Hint: hint}
	}
	c := &planner.Containers{Store: request.Absolute(d.Env, "XDG_DATA_HOME", in.Facts.Home+"/.local/share") +
		"/containers", Shared: s.Features.ContainersShared}
	if c.Shared {
		if err := planner.CheckStore(in.FS, c.Store); err != nil {
			return err
		}
	}
	if !c.Shared && absentBelowGrant(in, c.Store) {
		c.Store = ownStore
		d.add(Door{file: planner.StorageConf, spawn: writeConf(func() string { return storageConf })})
		in.Env = append(in.Env, "CONTAINERS_STORAGE_CONF="+planner.StorageConfInside)
		c.OwnStore = true
	}
	d.containerUsers(c)
	in.Env = append(in.Env, "CONTAINERS_CONF="+planner.ContainersConfInside)
	if !c.Shared {
		in.Env = append(in.Env, storage(in, len(c.UIDs) > 0)...)
	}
	d.add(Door{file: planner.ContainersConf, spawn: writeConf(func() string { return containersConf(c.Group != "") })})
	in.Nested, in.Containers = true, c
	return nil
}

// noContainers says why containers cannot be had with what else was asked for, or "", and what to do about it.
func (d *Doors) noContainers() (why, hint string) {
	if d.In.MapRoot {
		return "sandbox.non_root_user = false makes the program root inside already", "leave one of the two out"
	}
	return d.noNamespaces("an image", "a container")
}

// containerUsers gives containers the user's subordinate ids. Without them a container has one user, which is a loss.
func (d *Doors) containerUsers(c *planner.Containers) {
	in := d.In
	name := userName(in.Facts)
	ids, err := idmap.Read(name, in.Facts.UID, in.Facts.GID)
	if err == nil {
		c.Client, err = ownFile()
	}
	if err != nil {
		in.Losses = append(in.Losses, planner.Loss{What: "users of containers", Why: err.Error() +
			", so a container has one user: crun works, podman as the manual says", Fix: "as root: install uidmap, and " +
			idmap.Advice(name)})
		return
	}
	c.UIDs, c.GIDs = planRanges(ids.UIDs), planRanges(ids.GIDs)
	for _, tool := range []string{idmap.UIDTool, idmap.GIDTool} {
		if p, err := idmap.Tool(tool); err == nil {
			c.Tools = append(c.Tools, p.File())
		}
	}
	d.ids = &IDs{ids: ids, facts: in.Facts, ready: make(chan struct{})}
	d.relayed("--containers", Door{name: "containers", path: idmap.Socket, why: d.Settings.Origin("features.containers"),
		file: idsRelay, serve: func(l *net.UnixListener, _ Session, _ Refuser) {
			idmap.Server{Write: d.ids.write}.Serve(l)
		}})
}

// absentBelowGrant says whether a directory of the host's that is shown does not have p, so that nothing can be mounted
// there: nothing is made on the host for it.
func absentBelowGrant(in *planner.Input, p string) bool {
	if _, err := in.FS.Lstat(p); err == nil {
		return false
	}
	for _, g := range in.Grants {
		if (g.Mode == planner.Read || g.Mode == planner.Write || g.Mode == planner.Overlay) && host.Within(p, g.Path) {
			return true
		}
	}
	return false
}

// writeConf writes a file into the session's folder.
func writeConf(text func() string) func(string) (func(), error) {
	return func(path string) (func(), error) {
		if err := os.WriteFile(path, []byte(text()), 0o600); err != nil {
			return nil, &planner.Refusal{What: "writing " + quoting.Quote(path), Err: err, Hint: session.RecordHint}
		}
		return func() {}, nil
	}
}

// storage says how a new store is kept: podman would copy every layer, in doubt. A person's own variables count more.
func storage(in *planner.Input, users bool) (env []string) {
	if in.Facts.Since(5, 11) || host.Exists("/usr/bin/fuse-overlayfs") {
		env = append(env, "STORAGE_DRIVER=overlay")
		if !users {
			env = append(env, "STORAGE_OPTS=overlay.ignore_chown_errors=true")
		}
	}
	if host.Lookup(in.Env, "STORAGE_DRIVER") != "" {
		return nil
	}
	return env
}

func planRanges(list []idmap.Range) []plan.IDRange {
	out := make([]plan.IDRange, len(list))
	for i, x := range list {
		out[i] = plan.IDRange(x)
	}
	return out
}

// userName is the name of the user in the password file, which $USER need not be.
func userName(f host.Facts) string {
	if n := idmap.Name(f.UID); n != "" {
		return n
	}
	return f.User
}

// Maps writes the maps of process 1: below the host's user namespace, or below that of a network, in which the user is
// 0.
func (n *IDs) Maps(joined *netns.Network) func(pid int) error {
	if n == nil {
		return nil
	}
	uid, gid := n.facts.UID, n.facts.GID
	if joined == nil {
		return func(pid int) error {
			return n.ids.Map(pid, idmap.Own{Inside: uid, Outside: uid}, idmap.Own{Inside: gid, Outside: gid})
		}
	}
	return func(pid int) error {
		err := netns.WriteMap(joined.User, pid, "uid_map", idmap.Text(idmap.Own{Inside: uid}, n.ids.UIDs))
		if err == nil {
			err = netns.WriteMap(joined.User, pid, "gid_map", idmap.Text(idmap.Own{Inside: gid}, n.ids.GIDs))
		}
		return err
	}
}

// NetworkMaps writes the maps of the user namespace of a network.
func (n *IDs) NetworkMaps() func(pid int) error {
	if n == nil {
		return nil
	}
	return func(pid int) error {
		return n.ids.Map(pid, idmap.Own{Outside: n.facts.UID}, idmap.Own{Outside: n.facts.GID})
	}
}

// Standing takes a copy of the sandbox's user namespace.
func (n *IDs) Standing(c *child.Child) {
	if n == nil || c.Fds[plan.FdUserNS] == nil {
		return
	}
	n.once.Do(func() {
		if fd, err := unix.FcntlInt(c.Fds[plan.FdUserNS].Fd(), unix.F_DUPFD_CLOEXEC, 3); err == nil {
			n.user = os.NewFile(uintptr(fd), "userns")
		}
		close(n.ready)
	})
}

// write writes the map of a namespace that was made inside.
func (n *IDs) write(pid int, file, text string) error {
	<-n.ready
	if n.user == nil {
		return unix.EPERM
	}
	return netns.WriteMap(n.user, pid, file, text)
}

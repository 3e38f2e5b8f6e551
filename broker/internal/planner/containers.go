package planner

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"sbx.example/sbx/broker/internal/host"
	"sbx.example/sbx/broker/plan"
)

// Containers is what a rootless container engine gets inside. It makes user namespaces below the sandbox's own, and
// mount namespaces that belong to those: every mount that the sandbox has made is locked in them by the kernel.
type Containers struct {
	UIDs, GIDs []plan.IDRange // subordinate ids; none: namespaces inside have one user
	Store      string         // where engines keep images and containers
	OwnStore   bool           // Store is the sandbox's own place, which engines are told of
	Shared     bool           // the user's own store, not an empty one of the session's
	Client     string         // program that stands in for newuidmap and newgidmap inside; canonical
	Tools      []string       // where the host has these two; canonical
	Group      string         // control group of the session's that the program may divide; "" for none
	Handed     []string       // its controllers
}

// Names in the session's folder, and where they appear.
const (
	ContainersConf       = "containers.conf"
	ContainersConfInside = "/run/sbx/containers.conf"
	StorageConf          = "storage.conf"
	StorageConfInside    = "/run/sbx/storage.conf"
	containersWhy        = "--containers"
)

// containers puts the engine's places into the tree.
func (v *view) containers() error {
	c := v.in.Containers
	if c.Shared {
		if err := v.addGrant(Grant{Path: c.Store, Mode: Write, Explicit: true, Why: containersWhy + "=shared"}); err != nil {
			return err
		}
	} else if err := v.addGrant(Grant{Path: c.Store, Mode: Overlay, Own: true, Optional: true, Explicit: true,
		Why: containersWhy}); err != nil {
		return err
	}
	v.reachable()
	if c.OwnStore {
		v.root.at(StorageConfInside).file = v.in.SessionDir + "/" + StorageConf
	}
	v.root.at(ContainersConfInside).file = v.in.SessionDir + "/" + ContainersConf
	for _, t := range c.Tools {
		v.late = append(v.late, plan.Mount{Kind: plan.Bind, Target: t, Source: c.Client, Access: plan.ReadOnly,
			Why: containersWhy})
	}
	return nil
}

// reachable says which trees somebody granted of which root of a nested namespace can have more than the user could: it
// has the rights of the subordinate ids. The project is not among them, because the broker serves it with the rights of
// the user.
func (v *view) reachable() {
	var list []string
	for _, g := range v.in.Grants {
		if g.Explicit && !g.Socket && g.Mode != Scratch && !v.needsGuard(g.Path) {
			list = append(list, plan.Bytes(g.Path).Quote())
		}
	}
	if len(list) > 0 && len(v.in.Containers.UIDs) > 0 {
		v.losses = append(v.losses, Loss{What: "files of other containers",
			Why: "root of a namespace inside reaches what belongs to your subordinate ids in " + strings.Join(list, ", ") +
				", and can make set-user-id files where that is writable"})
	}
}

// inOverlay says whether the innermost grant above p is an overlay.
func (v *view) inOverlay(p string) bool {
	in, n := false, &v.root
	for _, name := range strings.Split(strings.Trim(path.Dir(p), "/"), "/") {
		if n = n.child(name); n == nil {
			break
		}
		if n.granted {
			in = n.mode == Overlay
		}
	}
	return in
}

// identify adds the subordinate ids to the plan's, and what tells who makes namespaces inside.
func (in *Input) identify(p *plan.Plan) {
	if in.Nested {
		p.Fds = append(p.Fds, plan.FdProc)
	}
	c := in.Containers
	if c == nil {
		return
	}
	p.Delegated = c.Handed
	if len(c.UIDs) == 0 {
		return
	}
	p.Identity.SubUIDs, p.Identity.SubGIDs = c.UIDs, c.GIDs
	if !slices.Contains(p.Fds, plan.FdUserNS) {
		p.Fds = append(p.Fds, plan.FdUserNS)
	}
}

// CheckStore says why p cannot be where containers are kept.
func CheckStore(fs FS, p string) error {
	_, _, st, err := host.Resolve(fs, p)
	if err == nil && st.Type != host.Dir {
		return &Refusal{What: fmt.Sprintf("--containers: %s is not a directory", plan.Bytes(p).Quote())}
	}
	if err != nil {
		return &Refusal{What: fmt.Sprintf("--containers=shared: %s", plan.Bytes(p).Quote()), Err: baseError(err),
			Hint: "there is no store yet: run podman outside once, or leave out =shared"}
	}
	return nil
}

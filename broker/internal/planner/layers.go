package planner

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"sbx.example/sbx/broker/internal/host"
	"sbx.example/sbx/broker/plan"
)

// splitLimit is how many entries of a directory get a layer each, at most.
const splitLimit = 128

// layers looks whether overlayfs takes the session's folder for what is written: none whose names another can change
// behind the kernel's back, so not in a home on a network file system, and not in a container or sandbox whose home is
// an overlay itself.
func (in *Input) layers() {
	m := host.Holding(in.Facts.Mounts, in.SessionDir)
	kind, _, _ := strings.Cut(m.Type, ".")
	switch kind {
	case "overlay", "fuse", "fuseblk", "fuse-overlayfs", "nfs", "nfs4", "cifs", "smb3", "9p", "ceph", "afs", "ecryptfs",
		"vfat", "exfat", "msdos":
		in.NoLayers = "sessions are kept on " + m.Type + " at " + plan.Bytes(m.Point).Quote() +
			", in which overlayfs can keep no layer"
		in.withoutLayers(in.NoLayers)
	}
}

// withoutLayers replaces writable layers. What tools make again starts empty, what they fetched is read-only, and what
// somebody asked for by name is refused. Through sbx-helper there are none: the kernel's overlay works in a directory
// that nobody may enter (its work directory has mode 0), so mounting one takes CAP_DAC_OVERRIDE, and keeps it for all
// that is done through it; the helper has given that up before it touches the first path.
func (in *Input) withoutLayers(why string) {
	var changed []string
	in.Grants = slices.Clone(in.Grants)
	for i := range in.Grants {
		g := &in.Grants[i]
		if g.Mode != Overlay || g.Own {
			continue
		}
		if g.Explicit || g.Path == in.Project {
			continue // see noLayer
		}
		g.Mode, g.Layer = Read, ""
		how := " is read-only"
		if base := path.Base(g.Path); base == ".cache" || base == ".npm" || strings.Contains(base, "cache") {
			g.Mode, how = Scratch, " starts empty"
		} else if _, err := in.FS.Lstat(g.Path); err != nil && g.Optional {
			continue // what is not there is not made
		}
		if text := plan.Bytes(g.Path).Quote() + how; !slices.Contains(changed, text) {
			changed = append(changed, text)
		}
	}
	if len(changed) > 0 {
		fix := "--rw PATH shares one with the host"
		if !in.Direct {
			fix += "; XDG_STATE_HOME names another place for sessions"
		}
		in.Losses = append(slices.Clone(in.Losses), Loss{What: "layers over caches", Why: why + ", so " +
			strings.Join(changed, ", "), Fix: fix})
	}
}

// noLayer refuses a writable layer that somebody asked for by name.
func (in *Input) noLayer(g Grant) error {
	what := "a writable layer over " + plan.Bytes(g.Path).Quote()
	if in.Direct {
		hint := "overlayfs reads with the rights of who mounts it, so the helper mounts none; use --rw, --ro or --tmpfs, " +
			"or a copy"
		if in.Bubblewrap != nil {
			hint = "a set-user-id bwrap mounts no overlay, nor does one before 0.11; use --rw, --ro or --tmpfs, or a copy"
		}
		return &Refusal{What: what + " cannot be had through " + in.builder(), Hint: hint}
	}
	return &Refusal{What: what + " cannot be had: " + in.NoLayers,
		Hint: "set XDG_STATE_HOME to a place on a local disk, or use --rw, --ro or --tmpfs"}
}

// split shows the directory p, below which something is mounted, as a place of the session's own with a layer over each
// entry: in a user namespace that mount is locked to what it covers, and the kernel makes no layer over a part of the
// two (EINVAL).
func (v *view) split(p string, n *node, g Grant) error {
	below := host.Below(v.in.Facts.Mounts, p)
	if g.Explicit || p == v.in.Project {
		return &Refusal{What: "a writable layer over " + plan.Bytes(p).Quote() + " (" + g.Why +
			") cannot be had: something is mounted below it, at " + plan.Bytes(below[0]).Quote(),
			Hint: "name directories below it that hold no mount, or use --rw, --ro or --tmpfs"}
	}
	list, err := v.in.FS.ReadDir(p)
	if err != nil || len(list) > splitLimit {
		v.losses = append(v.losses, Loss{What: "layer over " + plan.Bytes(p).Quote(),
			Why: "something is mounted below it, at " + plan.Bytes(below[0]).Quote() + ", so it is read-only",
			Fix: "--rw PATH shares it with the host"})
		return v.directory(p, n, Read, g)
	}
	v.tmpfs(p, g)
	g.Keep, g.Layer = nil, "" // which are about the directory itself
	return v.skeleton(p, n, Overlay, g)
}

// layered is an overlay on p: the host's directory, and on top files that stand in for its own.
func (v *view) layered(p string, n *node, g Grant) plan.Mount {
	m := plan.Mount{Kind: plan.Overlay, Target: p, Lower: []string{p}, Hide: n.hiddenNames(""), NoExec: g.NoExec,
		Why: g.Why}
	if g.Layer != "" && !n.grantsIn(g.Keep) { // nothing is mounted on what programs of earlier sessions have made
		m.Lower = []string{g.Layer, p}
	}
	for _, c := range n.children {
		if c.text != "" && len(c.text) <= plan.MaxText {
			m.Hide = slices.DeleteFunc(m.Hide, func(name string) bool { return name == c.name })
			m.Files = append(m.Files, plan.Text{Name: c.name, Text: c.text})
		} else if c.file != "" && len(m.Lower) == 1 {
			m.Lower = []string{path.Dir(c.file), p}
		}
	}
	return m
}

func (v *view) layer() string {
	v.layers++
	return fmt.Sprintf("%s/overlay/%d", v.in.SessionDir, v.layers)
}

func (v *view) overlay(p string, n *node, g Grant) {
	dir := v.layer()
	m := v.layered(p, n, g)
	if n.missing {
		m.Lower = []string{g.Layer}
	}
	m.Upper, m.Work, m.Access, m.NoUUID = dir+"/upper", dir+"/work", plan.ReadWrite, v.in.Facts.Since(6, 6)
	v.op(m)
}

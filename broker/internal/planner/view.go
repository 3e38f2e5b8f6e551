package planner

import (
	"cmp"
	"errors"
	"fmt"
	"path"
	"strings"
	"syscall"

	"sbx.example/sbx/broker/internal/host"
	"sbx.example/sbx/broker/plan"
)

// overlayHideFrom is the number of entries from which a directory with hidden names is shown through
// an overlay with whiteouts instead of one mount an entry.
const overlayHideFrom = 48

// skeletonSize bounds the root, in bytes: it holds directories, links and empty files only.
const skeletonSize = 16 << 20

// view turns grants and hides into mount operations.
type view struct {
	in      *Input
	root    node
	out     []plan.Mount
	late    []plan.Mount // what needs /dev/null or covers what is mounted before
	losses  []Loss
	layers  int            // of overlays
	places  int            // of the session's own
	secrets []Hide         // with canonical paths
	linked  []linkedSecret // secret files with other names
	trees   []shownTree    // in which names of secrets are hidden
	sockets []string       // of the host, in judged trees
	native  []string       // directories that are mounted on what is served
	served  int            // trees that the broker serves beside the project
	opened  []string       // directories of the host's of which the entries are shown one by one
}

func newView(in *Input) *view {
	return &view{in: in, out: make([]plan.Mount, 0, 160), secrets: make([]Hide, 0, len(in.Hides))}
}

// addHide resolves h, its links and the other mounts of its file system, and hides them all. A path
// that does not exist is hidden by its name: the host may create it later.
func (v *view) addHide(h Hide) error {
	canon, links, st, err := host.Resolve(v.in.FS, h.Path)
	if canon == "" && host.NotExist(err) { // below something that is no directory
		canon = path.Clean(h.Path)
	}
	if canon == "" {
		return fmt.Errorf("resolving %s: %w", h.Path, err)
	}
	if errors.Is(err, host.ErrForeign) {
		canon = v.in.Facts.Foreign.Closed(canon)
	}
	if canon == "/" {
		return &Refusal{What: "hiding " + h.Path + " would hide everything"}
	}
	if h.Ask {
		if n := v.root.at(canon); !n.hidden {
			n.hidden, n.ask = true, true
		}
		return nil
	}
	v.hideAt(canon, h.Secret)
	if h.Secret {
		v.secrets = append(v.secrets, Hide{Path: canon, Secret: true, Why: h.Why})
	}
	for _, l := range links {
		if l.Path == path.Clean(h.Path) { // the link itself bears the secret's name
			v.hideAt(l.Path, h.Secret)
		}
	}
	for _, a := range host.Aliases(v.in.Facts.Mounts, canon) {
		v.hideAt(a, h.Secret)
	}
	if err == nil && h.Secret {
		v.noteLinked(canon, st)
	}
	return nil
}

func (v *view) hideAt(p string, secret bool) {
	if p != "" && p != "/" {
		n := v.root.at(p)
		n.hidden, n.secret, n.ask = true, n.secret || secret, false
	}
}

// orMade is the other way out where what is to be written is missing.
func orMade(g Grant) string {
	if g.Why != "--rw" {
		return ""
	}
	return "; --rw-create makes a directory"
}

// addGrant resolves g once. The links on the way exist inside as links.
func (v *view) addGrant(g Grant) error {
	if g.Source != "" {
		n := v.root.at(g.Path)
		n.granted, n.mode, n.grant, n.stat = true, g.Mode, g, host.Stat{Type: host.Socket}
		return nil
	}
	canon, links, st, err := host.Resolve(v.in.FS, g.Path)
	if err != nil && !(host.NotExist(err) && (g.Optional || g.Mode == Scratch)) {
		if (errors.Is(err, syscall.EACCES) || errors.Is(err, host.ErrForeign)) && g.Optional {
			return nil
		}
		return &Refusal{What: fmt.Sprintf("%s (%s)", plan.Bytes(g.Path).Quote(), g.Why), Err: baseError(err),
			Hint: "name a path that exists, or end it with ? where it may be missing" + orMade(g)}
	}
	if canon == "" && g.Optional { // below something that is no directory: "" would be the root
		return nil
	}
	if canon == "" {
		return &Refusal{What: fmt.Sprintf("%s (%s)", plan.Bytes(g.Path).Quote(), g.Why), Err: baseError(err)}
	}
	for _, l := range links {
		v.root.at(l.Path).link = l.Text
	}
	if err != nil && g.Mode != Scratch && g.Mode != Overlay {
		return nil
	}
	n := v.root.at(canon)
	if n.granted && !g.Stronger(n.grant) {
		return nil
	}
	n.granted, n.mode, n.grant, n.stat, n.missing = true, g.Mode, g, st, err != nil || g.Own
	if g.Reveal {
		n.hidden, n.secret = false, false
		v.leadTo(canon, func(above *node) { above.secret = false })
	}
	return nil
}

// Stronger says whether g replaces what stands at the same path: a person's word over a profile's, else the later mode.
func (g *Grant) Stronger(old Grant) bool {
	if g.Explicit != old.Explicit {
		return g.Explicit
	}
	return g.Mode >= old.Mode
}

func baseError(err error) error {
	var no syscall.Errno
	if errors.As(err, &no) {
		return no
	}
	return err
}

// checkSecrets refuses a grant that leads into a secret.
func (v *view) checkSecrets(g Grant, canon string) error {
	for _, h := range v.secrets {
		if host.Within(canon, h.Path) && !g.Reveal {
			return &Refusal{What: fmt.Sprintf("%s (%s) is a secret: %s", plan.Bytes(g.Path).Quote(), g.Why, h.Why),
				Hint: "sbx never shows secrets by --ro or --rw; copy what the program needs to a place of its own"}
		}
	}
	return nil
}

// build walks the tree and returns the operations, root first.
func (v *view) build() ([]plan.Mount, error) {
	v.op(plan.Mount{Kind: plan.Tmpfs, Target: "/", Size: skeletonSize, Inodes: 65536, Mode: 0o755, Why: "skeleton"})
	if err := v.skeleton("/", &v.root, v.root.mode, v.root.grant); err != nil {
		return nil, err
	}
	return append(append(v.out, v.late...), plan.Mount{Kind: plan.Remount, Target: "/", Access: plan.ReadOnly}), nil
}

func (v *view) op(m plan.Mount) { v.out = append(v.out, m) }

// skeleton shows a directory of the sandbox's own at p: the tree's children, and of the host's
// directory, where mode says so, every sibling that is not hidden.
func (v *view) skeleton(p string, n *node, mode Mode, g Grant) error {
	var list []host.Entry // sorted by name
	if mode == Read || mode == Write || mode == Overlay {
		var err error
		list, err = v.in.FS.ReadDir(p)
		if err != nil && !errors.Is(err, syscall.EACCES) {
			return fmt.Errorf("listing %s: %w", plan.Bytes(p).Quote(), err)
		}
		v.opened = append(v.opened, p)
		for _, e := range list {
			child := n.child(e.Name)
			if child == nil {
				child = &node{name: e.Name}
			}
			entry := g
			entry.listed = true
			if err := v.show(path.Join(p, e.Name), child, e.Type, mode, entry); err != nil {
				return err
			}
		}
	}
	for _, c := range n.children {
		if !host.Lists(list, c.name) {
			if err := v.show(path.Join(p, c.name), c, host.Dir, None, Grant{}); err != nil {
				return err
			}
		}
	}
	return nil
}

// show makes one name of a skeleton directory. typ is what the host has there.
func (v *view) show(p string, n *node, typ host.Type, mode Mode, g Grant) error {
	switch {
	case n.file != "":
		v.op(plan.Mount{Kind: plan.File, Target: p, Mode: 0o644})
		v.op(plan.Mount{Kind: plan.Bind, Target: p, Source: n.file, Access: plan.ReadOnly,
			Why: cmp.Or(n.why, "network")})
		return nil
	case n.masked:
		v.op(plan.Mount{Kind: plan.Symlink, Target: p, Source: n.link})
		return nil
	case n.hidden && (n.secret || !n.shows()) && !n.masks():
		return nil
	case n.hidden:
		mode, g = None, Grant{} // only what is granted below it by name
	case n.special != nil:
		v.op(plan.Mount{Kind: plan.Dir, Target: p, Mode: 0o755})
		v.out = append(v.out, n.special...)
		return v.inside(p, n)
	case n.link != "":
		v.op(plan.Mount{Kind: plan.Symlink, Target: p, Source: n.link})
		return nil
	}
	if n.granted {
		mode, g, typ = n.mode, n.grant, n.stat.Type
	}
	if mode == None {
		if len(n.children) == 0 || !n.shows() {
			return nil
		}
		v.op(plan.Mount{Kind: plan.Dir, Target: p, Mode: 0o755})
		return v.skeleton(p, n, None, g)
	}
	if n.missing || mode == Scratch {
		return v.fresh(p, n, mode, g)
	}
	switch typ {
	case host.Link:
		return v.copyLink(p)
	case host.File:
		v.op(plan.Mount{Kind: plan.File, Target: p, Mode: 0o644})
		v.bind(p, mode, g)
	case host.Socket:
		if g.Socket { // others of the host are not part of a view
			v.op(plan.Mount{Kind: plan.File, Target: p, Mode: 0o600})
			v.bind(p, Write, g)
		}
	case host.Dir:
		v.op(plan.Mount{Kind: plan.Dir, Target: p, Mode: 0o755})
		return v.directory(p, n, mode, g)
	}
	return nil // devices and pipes of the host are not part of a view
}

// shows says whether anything visible lies below n.
func (n *node) shows() bool {
	for _, c := range n.children {
		if c.file != "" || c.masked || c.masks() || !(c.hidden && c.secret) && c.shows() || !c.hidden && (c.granted ||
			c.link != "" || c.special != nil) {
			return true
		}
	}
	return false
}

// directory mounts the host's directory p, whole if it can be.
func (v *view) directory(p string, n *node, mode Mode, g Grant) error {
	if mode == Write && (n.hides() || v.needsGuard(p)) || mode == Read && v.serves(p, n) {
		return v.guarded(p, n, mode, g)
	}
	if mode == Overlay && host.Holding(v.in.Facts.Mounts, p).Point == p && !n.granted {
		mode = Read // an entry of a directory that was split; it may be of any kind
	}
	if mode == Overlay {
		if len(host.Below(v.in.Facts.Mounts, p)) > 0 {
			return v.split(p, n, g)
		}
		v.overlay(p, n, g)
		return v.below(p, n)
	}
	if !n.hides() {
		v.bind(p, mode, g)
		return v.below(p, n)
	}
	list, err := v.in.FS.ReadDir(p)
	// A layer with mounts below it is refused (EINVAL), and nothing is mounted below what one hides.
	if err == nil && !v.in.Direct && !v.in.InPlace && len(list) >= overlayHideFrom && !n.opens() &&
		len(host.Below(v.in.Facts.Mounts, p)) == 0 && !host.Within(v.in.Facts.Home, p) && !host.Within(p, v.in.Facts.Home) {
		m := v.layered(p, n, g)
		m.Access = plan.ReadOnly
		v.op(m)
		v.nested(p, n, mode, g)
		return v.below(p, n)
	}
	if v.inTree(p) {
		return v.readIn(p, n, g)
	}
	if v.inOwnPlace(p) {
		// The skeleton would stand in a writable tmpfs, where the program could add to it.
		v.op(plan.Mount{Kind: plan.Tmpfs, Target: p, Size: 1 << 20, Inodes: 65536, Mode: 0o755, Why: "skeleton"})
		v.late = append(v.late, plan.Mount{Kind: plan.Remount, Target: p, Access: plan.ReadOnly})
	}
	return v.skeleton(p, n, mode, g)
}

// inOwnPlace says whether p lies in one of the sandbox's own temporary places.
func (v *view) inOwnPlace(p string) bool {
	for d := path.Dir(p); d != "/"; d = path.Dir(d) {
		if n := v.root.find(d); n != nil && (n.special != nil || n.granted && (n.mode == Scratch || n.missing)) {
			return true
		}
	}
	return false
}

// nested mounts again what is mounted below an overlay's lower directory, which an overlay leaves out.
func (v *view) nested(p string, n *node, mode Mode, g Grant) {
	for _, m := range host.Below(v.in.Facts.Mounts, p) {
		if c := n.find(strings.TrimPrefix(m, p)); c == nil || !c.hidden && !c.granted && c.file == "" {
			if st, err := v.in.FS.Lstat(m); err == nil && (st.Type == host.Dir || st.Type == host.File) {
				v.bind(m, mode, g)
			}
		}
	}
}

// below mounts the grants that lie below a directory that is mounted whole.
func (v *view) below(p string, n *node) error { return v.among(p, n, n) }

// among is below for a directory on the way to such grants: around is the one that is mounted.
func (v *view) among(p string, n, around *node) error {
	for _, c := range n.children {
		cp := path.Join(p, c.name)
		switch {
		case c.hidden && (c.secret || !c.shows()) || c.link != "" || c.file != "":
		case c.special != nil:
			if st, err := v.in.FS.Lstat(cp); err == nil && st.Type == host.Dir {
				v.out = append(v.out, c.special...)
				if err := v.inside(cp, c); err != nil {
					return err
				}
			}
		case c.granted && c.shownBy(around, around == n):
			if err := v.among(cp, c, around); err != nil {
				return err
			}
		case c.granted && c.missing:
			if err := v.notThere(cp, c); err != nil {
				return err
			}
		case c.granted && c.mode == Scratch:
			v.tmpfs(cp, c.grant)
		case c.granted && c.stat.Type == host.Dir:
			if err := v.directory(cp, c, c.mode, c.grant); err != nil {
				return err
			}
		case c.granted && (c.stat.Type == host.File || c.grant.Socket):
			v.bind(cp, c.mode, c.grant)
		default:
			if err := v.among(cp, c, around); err != nil {
				return err
			}
		}
	}
	return nil
}

// shownBy says whether what is mounted around a granted place shows it already, in the same way. A layer further up
// than right above is another layer.
func (n *node) shownBy(around *node, rightAbove bool) bool {
	return around.granted && n.grant.Mode == around.mode && n.grant.NoExec == around.grant.NoExec &&
		(rightAbove || n.grant.Mode == Write) && !n.hides() && len(n.grant.Keep) == 0
}

// notThere is what becomes of a granted place that the host lacks, in a tree of the host's, where nothing may be made.
// What the program makes in an overlay is the session's own.
func (v *view) notThere(p string, n *node) error {
	switch {
	case n.grant.Own && n.stat.Type == host.Dir:
		v.ownPlace(p, n.grant)
		return nil
	case n.mode != Scratch && (!n.grant.Own || v.inOverlay(p)):
		return nil
	}
	return &Refusal{What: fmt.Sprintf("%s (%s) does not exist below the host's %s", plan.Bytes(p).Quote(), n.grant.Why,
		plan.Bytes(path.Dir(p)).Quote()),
		Hint: "create the directory first; sbx leaves no placeholder on the host"}
}

func (v *view) bind(p string, mode Mode, g Grant) {
	m := plan.Mount{Kind: plan.Bind, Target: p, Source: p, Access: plan.ReadOnly, NoExec: g.NoExec, Why: g.Why}
	if mode == Write {
		m.Access = plan.ReadWrite
	}
	if g.Source != "" {
		m.Source = path.Join(v.in.SessionDir, g.Source)
	} else if m.Optional = g.listed; !g.listed || v.in.Bubblewrap != nil { // others are mounted whatever they are by then
		if st, err := v.in.FS.Lstat(p); err == nil {
			m.Dev, m.Ino = st.Dev, st.Ino
		}
	}
	v.op(m)
}

// fresh shows an empty writable place: a tmpfs, or a folder of the session's where the host has none
// of that name (a cache that does not exist yet).
func (v *view) fresh(p string, n *node, mode Mode, g Grant) error {
	v.op(plan.Mount{Kind: plan.Dir, Target: p, Mode: 0o755})
	if mode == Scratch {
		v.tmpfs(p, g)
	} else if g.Layer != "" && !n.grantsIn(g.Keep) {
		v.overlay(p, n, g)
	} else {
		v.ownPlace(p, g)
	}
	return v.inside(p, n)
}

// ownPlace mounts an empty folder of the session's at p.
func (v *view) ownPlace(p string, g Grant) {
	v.places++
	v.op(plan.Mount{Kind: plan.Bind, Target: p, Source: fmt.Sprintf("%s/overlay/own/%d", v.in.SessionDir, v.places),
		Access: plan.ReadWrite, NoExec: g.NoExec, Why: g.Why})
}

// inside shows grants below a place that is the sandbox's own and writable.
func (v *view) inside(p string, n *node) error {
	for _, c := range n.children {
		if c.missing && c.mode == Overlay && n.missing && n.mode == Overlay {
			continue // it is the session's own already
		}
		if err := v.show(path.Join(p, c.name), c, host.Dir, None, Grant{}); err != nil {
			return err
		}
	}
	return nil
}

func (v *view) tmpfs(p string, g Grant) {
	v.op(plan.Mount{Kind: plan.Tmpfs, Target: p, Size: v.in.TmpSize, Inodes: v.in.TmpSize >> 12, Mode: plan.TmpMode(p),
		NoExec: g.NoExec, Why: g.Why})
}

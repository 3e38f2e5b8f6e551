package planner

import (
	"path"
	"slices"
	"strings"

	"sbx.example/sbx/broker/internal/host"
	"sbx.example/sbx/broker/plan"
)

// What is here fits a plan to macOS, where nothing is mounted and no namespace is made: rules about paths hold, and
// the last that matches decides (package seatbelt). It begins with the same view as everywhere.

// Show is what a place is to programs.
type Show uint8

// What places are, from nothing to all.
const (
	Absent    Show = iota // refused
	Named                 // there, with its attributes and the text of a link; it is not read
	Readable              // read, listed and run
	Changable             // and written
)

// Place is one line of a view. Of two that hold for a path the later holds.
type Place struct {
	Path   string
	Show   Show
	Tree   bool // with everything below
	NoExec bool
	Guard  bool // a tree that is written and has guarded names
	Why    string
}

const placedWhy = "macOS gives no namespaces"

// NotPlaced is the refusal of something that takes what macOS does not have.
func NotPlaced(what string) error {
	return &Refusal{What: what + " cannot be had with the backend seatbelt", Hint: "leave it out; it works on Linux"}
}

// BuildPlaced computes the plan for a program that rules about paths hold, and the places that these are made of. The
// plan has neither Landlock nor a filter.
func BuildPlaced(in Input) (*plan.Plan, []Place, []Loss, error) {
	if err := in.placed(); err != nil {
		return nil, nil, nil, err
	}
	in.InPlace = true
	v := newView(&in)
	if err := v.collect(); err != nil {
		return nil, nil, nil, err
	}
	v.ownTemporary()
	var list []Place
	around := Absent
	if v.root.granted && v.root.mode == Read {
		around = Readable
		list = append(list, Place{Path: "/", Show: around, Tree: true, Why: v.root.grant.Why})
	}
	v.listPlaces(&list, "/", &v.root, around)
	list = append(list, v.keepAway()...)
	tmp := in.tmp()
	for dir := path.Dir(tmp); dir != "/"; dir = path.Dir(dir) {
		list = append(list, Place{Path: dir, Show: Named, Why: "leads on"})
	}
	list = append(list, Place{Path: tmp, Show: Changable, Tree: true, Why: "temporary files"})
	p := &plan.Plan{Version: plan.Version, Session: in.Session,
		Identity: plan.Identity{InsideUID: in.Facts.UID, OutsideUID: in.Facts.UID, InsideGID: in.Facts.GID,
			OutsideGID: in.Facts.GID},
		Mounts: v.granted(list), Stdio: in.Stdio, InPlace: &plan.InPlace{Tmp: plan.Bytes(tmp)}}
	var err error
	if p.Process, err = process(&in, p.Mounts, v.hiddenAt(in.Dir)); err != nil {
		return nil, nil, nil, err
	}
	in.identify(p)
	losses := append(append(slices.Clone(in.Losses), v.losses...), in.placedLosses()...)
	return p, list, append(losses, in.lostDecoys(p)...), nil
}

// placed refuses what cannot be had so, and takes away what nobody asked for.
func (in *Input) placed() error {
	for _, x := range [...]struct {
		asked bool
		what  string
	}{{in.MapRoot, "uid 0 inside"}, {in.AsPID1, "--as-pid-1"}, {in.TimeOffset != 0, "--time-offset"},
		{in.JoinNet, "a filtered network"}, {in.Nested, "--nested"}, {in.Containers != nil, "--containers"},
		{in.Only != nil, "--only"}, {len(in.Tools) > 0, "a tool of the settings"},
		{in.NoSymFollow, "fs.no_sym_follow"}, {in.ProjectAt != "", "sandbox.workdir_at"},
		{in.Hostname != "" && in.Hostname != "sbx-"+in.Session, "a host name inside"}} {
		if x.asked {
			return NotPlaced(x.what)
		}
	}
	for i := range in.Grants {
		switch g := &in.Grants[i]; {
		case g.Socket || g.Source != "":
			return NotPlaced("the socket " + plan.Bytes(g.Path).Quote() + " (" + g.Why + ")")
		case g.Mode == Scratch && g.Explicit:
			return NotPlaced("an empty place at " + plan.Bytes(g.Path).Quote() + " (" + g.Why + ")")
		case g.Mode == Overlay && (g.Explicit || g.Path == in.Project):
			return NotPlaced("a writable layer over " + plan.Bytes(g.Path).Quote() + " (" + g.Why + ")")
		}
	}
	in.Placed, in.Facts.Fuse, in.Hostname, in.Limits = true, false, "", nil
	for i := range in.Stdio { // they are the caller's own
		in.Stdio[i] = plan.Inherit
	}
	in.withoutMounts()
	in.ownPlaces()
	return nil
}

// ownTemporary hides the temporary files of other programs, but for what is granted there by name.
func (v *view) ownTemporary() {
	for _, p := range [...]string{"/tmp", "/var/tmp", "/private/var/folders"} {
		canon, _, _, err := host.Resolve(v.in.FS, p)
		if err != nil && !host.NotExist(err) || canon == "" {
			canon = p
		}
		if n := v.root.at(canon); !n.granted {
			n.hidden = true
		}
	}
}

// listPlaces lists what is at and below a node, what is above first. around is what a path is without a word of its
// own.
func (v *view) listPlaces(out *[]Place, p string, n *node, around Show) {
	for _, c := range n.children {
		v.listPlace(out, path.Join(p, c.name), c, around)
	}
}

func (v *view) listPlace(out *[]Place, p string, n *node, around Show) {
	switch {
	case n.special != nil:
	case n.file != "" || n.masked || n.hidden && (n.secret || !n.shows()):
		for _, name := range v.spellings(p) {
			*out = append(*out, Place{Path: name, Tree: true, Why: "hidden"})
		}
		return
	case n.hidden: // but for what is granted below it by name
		*out = append(*out, Place{Path: p, Tree: true, Why: "hidden"}, Place{Path: p, Show: Named, Why: "leads on"})
		around = Absent
	case n.granted && !n.missing && (n.mode == Read || n.mode == Write):
		x := Place{Path: p, Show: Readable, Tree: n.stat.Type == host.Dir, NoExec: n.grant.NoExec, Why: n.grant.Why}
		if n.mode == Write {
			x.Show, x.Guard = Changable, n.stat.Type == host.Dir && v.needsGuard(p)
		}
		if n.stat.Type != host.Dir && n.stat.Type != host.File {
			return // devices, pipes and sockets are no part of a view
		}
		*out = append(*out, x)
		around = x.Show
	case around == Absent && (n.link != "" || n.shows()):
		*out = append(*out, Place{Path: p, Show: Named, Why: "leads on"})
	}
	v.listPlaces(out, p, n, around)
}

// spellings are a hidden name as it is written, and as the directory has it where the file system folds letter case:
// rules see the name that is stored.
func (v *view) spellings(p string) []string {
	out := []string{p}
	list, err := v.in.FS.ReadDir(path.Dir(p))
	if err != nil || host.Lists(list, path.Base(p)) {
		return out
	}
	for _, e := range list {
		if strings.EqualFold(e.Name, path.Base(p)) {
			out = append(out, path.Join(path.Dir(p), e.Name))
		}
	}
	return out
}

// keepAway hides what holds credentials and could be shown without them only by a mount.
func (v *view) keepAway() (out []Place) {
	for _, m := range v.in.Masked {
		if !v.isShown(m.Path) {
			continue
		}
		out = append(out, Place{Path: m.Path, Tree: true, Why: MaskedWhy})
		v.losses = append(v.losses, Loss{What: plan.Bytes(m.Path).Quote(), Why: "it holds a password or token, and without " +
			"mounts it cannot be shown without that, so it is hidden and git inside fails there",
			Fix: "keep the credential in a credential helper instead"})
	}
	return out
}

// granted are the places as a plan says them.
func (v *view) granted(list []Place) (out []plan.Mount) {
	for _, x := range list {
		switch x.Show {
		case Absent:
			out = append(out, plan.Mount{Kind: plan.Absent, Target: x.Path, Why: x.Why})
			continue
		case Named:
			continue
		}
		m := plan.Mount{Kind: plan.Bind, Target: x.Path, Source: x.Path, Access: plan.ReadOnly, NoExec: x.NoExec, Why: x.Why}
		if x.Show == Changable {
			m.Access = plan.ReadWrite
		}
		if out = append(out, m); x.Guard {
			out = append(out, plan.Mount{Kind: plan.Judged, Target: x.Path, Access: plan.ReadOnly, Why: x.Why + ", guarded"})
		}
	}
	return out
}

// PlacedLosses are those of every plan that rules about paths hold.
func PlacedLosses() []Loss {
	out := []Loss{
		{What: "absence", Why: placedWhy + ", so what is not granted is refused (Operation not permitted) and not out of " +
			"sight"},
		{What: "processes", Why: "the host's are listed; the program can signal and look at those of its own sandbox alone"},
		{What: "the end", Why: "what the program leaves behind goes on, in its sandbox, when the session has ended"},
		{What: "guarded names", Why: "rules know no contents, so git's settings, hooks, submodules and worktrees cannot be " +
			"changed at all, git init and git clone fail inside, directories such as .github are not made or moved, and " +
			"git's index may be written with anything"},
		{What: "loopback and sockets", Why: "127.0.0.1 and sockets with a name would be the host's, so there are none " +
			"but pairs"},
		{What: "a terminal", Why: "the caller's own could be typed into, so its settings and size are not the program's"},
		{What: "limits", Why: "there are no control groups: memory, processes and files are bounded as outside"},
		{What: "late secrets", Why: "what has the name of a secret later than at the start is seen in a granted tree"},
	}
	for i := range out {
		out[i].Always = true
	}
	return out
}

func (in *Input) placedLosses() []Loss {
	out := PlacedLosses()
	if in.ShareNet {
		out = append(out, Loss{What: "the network", Why: "rules know no addresses but this host's own, so all others can " +
			"be reached, also those of neighbours, and nothing is held back by labels"})
	}
	if in.Asks {
		out = append(out, Loss{What: "questions", Why: "rules cannot grow, so what is not granted is refused, as with " +
			"--static"})
	}
	return out
}

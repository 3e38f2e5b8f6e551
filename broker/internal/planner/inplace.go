package planner

import (
	"path"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"sbx.example/sbx/broker/internal/host"
	"sbx.example/sbx/broker/plan"
)

// What is here fits a plan to a host that gives no namespaces and no helper: nothing is mounted, and Landlock and the
// filter alone hold (backend landlock). It begins with the same view as everywhere.

// inPlaceWhy is the reason of what follows from that.
const inPlaceWhy = "this host gives no namespaces (sandbox.backend = landlock)"

// NotInPlace is the refusal of something that takes namespaces.
func NotInPlace(what string) error {
	return &Refusal{What: what + " cannot be had with the backend landlock, which makes no namespaces",
		Hint: "leave it out, or see sbx doctor for another backend"}
}

// inPlace refuses what cannot be had so, and takes away what nobody asked for.
func (in *Input) inPlace() error {
	if !in.InPlace {
		return nil
	}
	for _, x := range [...]struct {
		asked bool
		what  string
	}{{in.MapRoot, "uid 0 inside"}, {in.AsPID1, "--as-pid-1"}, {in.TimeOffset != 0, "--time-offset"},
		{in.JoinNet || in.ShareNet, "a network"}, {in.Nested, "--nested"}, {in.Containers != nil, "--containers"},
		{in.Only != nil, "--only"}, {len(in.Tools) > 0, "a tool of the settings"},
		{in.NoSymFollow, "fs.no_sym_follow"}, {in.Judging == nil, "a filter that reports what is written"},
		{in.Hostname != "" && in.Hostname != "sbx-"+in.Session && in.Hostname != "sbx-doctor", "a host name inside"}} {
		if x.asked {
			return NotInPlace(x.what)
		}
	}
	for i := range in.Grants {
		switch g := &in.Grants[i]; {
		case g.Socket || g.Source != "":
			return NotInPlace("the socket " + plan.Bytes(g.Path).Quote() + " (" + g.Why + ")")
		case g.Mode == Scratch && g.Explicit:
			return NotInPlace("an empty place at " + plan.Bytes(g.Path).Quote() + " (" + g.Why + ")")
		case g.Mode == Overlay && (g.Explicit || g.Path == in.Project):
			return NotInPlace("a writable layer over " + plan.Bytes(g.Path).Quote() + " (" + g.Why + ")")
		}
	}
	in.Facts.Fuse, in.Hostname = false, ""
	for i, kind := range in.Stdio { // by its descriptor a file cannot be written either, without a rule
		if kind == plan.Reopen {
			in.Stdio[i] = plan.Inherit
		}
	}
	in.withoutMounts()
	in.ownPlaces()
	in.sharedNproc()
	return nil
}

// withoutMounts shows caches as they are, read-only, and drops what the session would have of its own.
func (in *Input) withoutMounts() {
	var changed []string
	in.Grants = slices.DeleteFunc(slices.Clone(in.Grants), func(g Grant) bool { return g.Own || g.Mode == Scratch })
	for i := range in.Grants {
		g := &in.Grants[i]
		if g.Mode != Overlay {
			continue
		}
		g.Mode, g.Layer, g.Keep = Read, "", nil
		_, err := in.FS.Lstat(g.Path)
		if err == nil && !slices.Contains(changed, g.Path) {
			changed = append(changed, g.Path)
		}
	}
	if len(changed) > 0 {
		in.Losses = append(slices.Clone(in.Losses), Loss{What: "layers over caches",
			Why: in.unmounted() + ", so " + plan.Few(quoted(changed), 4, ", ") + " are read-only, and XDG_CACHE_HOME names " +
				"an empty place",
			Fix: "--rw PATH shares one with the host"})
	}
}

// unmounted is why nothing is mounted.
func (in *Input) unmounted() string {
	if in.Placed {
		return placedWhy
	}
	return inPlaceWhy
}

// tmp is the session's folder for temporary files.
func (in *Input) tmp() string { return in.SessionDir + "/overlay/tmp" }

// ownPlaces tells programs where the session's places are. What a person has set for this run stays.
func (in *Input) ownPlaces() {
	tmp := in.tmp()
	in.Env = slices.DeleteFunc(slices.Clone(in.Env), func(e string) bool {
		return strings.HasPrefix(e, "XDG_RUNTIME_DIR=") || strings.HasPrefix(e, "XDG_CACHE_HOME=")
	})
	list := [][2]string{{"TMPDIR", tmp}, {"TMP", tmp}, {"TEMP", tmp}, {"XDG_CACHE_HOME", tmp + "/cache"},
		{"npm_config_cache", tmp + "/npm"}}
	if in.Placed { // who looks in ~/Library/Caches asks no variable of the desktop's
		list = append(list, [2]string{"GOCACHE", tmp + "/cache/go-build"}, [2]string{"PIP_CACHE_DIR", tmp + "/cache/pip"})
	}
	for _, v := range list {
		if host.Lookup(in.Env, v[0]) == "" {
			in.Env = append(in.Env, v[0]+"="+v[1])
		}
	}
}

// sharedNproc says what the limit on processes counts.
func (in *Input) sharedNproc() {
	counts := func(l plan.Limit) bool { return l.Resource == unix.RLIMIT_NPROC }
	if !slices.ContainsFunc(in.Limits, counts) || slices.ContainsFunc(in.Controls, func(c plan.Control) bool {
		return c.File == "pids.max"
	}) {
		return
	}
	in.Losses = append(slices.Clone(in.Losses), Loss{What: "limit on processes",
		Why: "without a user namespace the kernel counts all of your processes, also those outside",
		Fix: "--pids asks for a control group, where it can be had (sbx doctor)"})
}

// keepGranted makes of the view's mounts what is granted, and the rules that grant it.
func (v *view) keepGranted(p *plan.Plan) {
	in := v.in
	g := &granter{in: in, l: newLandlock(in.Facts.Landlock)}
	var kept []plan.Mount
	for _, m := range p.Mounts {
		switch {
		case m.Kind == plan.Judged, m.Kind == plan.Bind && m.Source == m.Target && !m.Device:
			kept = append(kept, m)
		case m.Kind == plan.Bind && m.Device:
			g.add(m.Target, llReadFile|llWriteFile|llTruncate|llIoctlDev)
		case m.Kind == plan.Proc:
			g.add(m.Target, llReadFile|llReadDir)
		case m.Target != "/" && m.Kind != plan.Dir && m.Kind != plan.File && m.Kind != plan.Protect &&
			m.Kind != plan.Remount && m.Kind != plan.Symlink:
			g.covered = append(g.covered, m.Target) // something else would stand there
		}
	}
	tmp := in.tmp()
	const why = "temporary files"
	kept = append(kept, plan.Mount{Kind: plan.Bind, Target: tmp, Source: tmp, Access: plan.ReadWrite, Why: why},
		plan.Mount{Kind: plan.Judged, Target: tmp, Access: plan.ReadOnly, Why: why})
	p.Mounts, p.InPlace, p.Landlock = kept, &plan.InPlace{Tmp: plan.Bytes(tmp)}, g.l
	for _, dir := range v.opened {
		if dir != "/" { // the listing of all below would be granted
			g.add(dir, llReadDir)
			g.listed = append(g.listed, dir)
		}
	}
	for i := range kept {
		if m := &kept[i]; m.Kind == plan.Bind && m.Target != tmp {
			g.tree(m, p.Judged(m.Target))
		}
	}
	g.add(tmp, g.l.HandledFS&^llIoctlDev)
	p.Seccomp = *in.Judging
	if len(g.split) > 0 {
		p.Seccomp = *in.JudgingAll
	}
	v.losses = append(v.losses, g.losses()...)
	v.losses = append(v.losses, in.inPlaceLosses(p)...)
}

// newLandlock handles every right that the kernel knows: what no rule grants is refused.
func newLandlock(abi int) *plan.Landlock {
	l := &plan.Landlock{ABI: abi, HandledFS: llExecute | llWriteFile | llReadFile | llReadDir | llRemoveDir |
		llRemoveFile | llMake | llRefer}
	if abi >= 3 {
		l.HandledFS |= llTruncate
	}
	if abi >= 4 {
		l.HandledNet = 1<<0 | 1<<1 // TCP: bind and connect
	}
	if abi >= 5 {
		l.HandledFS |= llIoctlDev
	}
	if abi >= 6 {
		l.Scoped = plan.ScopeAbstract | plan.ScopeSignal
	}
	return l
}

// Further rights of landlock(7).
const (
	llReadFile = 1 << 2
	llReadDir  = 1 << 3
	llTruncate = 1 << 14 // ABI 3
	llIoctlDev = 1 << 15 // ABI 5

	llOfFiles = llExecute | llReadFile | llWriteFile | llTruncate | llIoctlDev
)

// ListOnly is the right to a directory of which the entries are granted, and not the whole.
const ListOnly = llReadDir

// maxGranted bounds the rules.
const maxGranted = 4096

// granter makes rules of grants. A rule holds for all below its path, and none takes away: beside a name that must stay
// out of reach its siblings are granted, and of the directory above only its listing.
type granter struct {
	in      *Input
	l       *plan.Landlock
	covered []string // what would not be seen
	split   []string // directories in a tree that is written of which the entries are granted
	listed  []string // all such directories
	cut     []string // of which not all entries are granted
	noexec  []string // in which nothing is to be run
}

func (g *granter) add(p string, access uint64) {
	if access &= g.l.HandledFS; access == 0 {
		return
	}
	for i := range g.l.Rules {
		if r := &g.l.Rules[i]; string(r.Path) == p {
			r.Access |= access
			return
		}
	}
	g.l.Rules = append(g.l.Rules, plan.LandlockRule{Path: plan.Bytes(p), Access: access})
}

// tree grants what a mount would show. Of a judged one that is reading: the broker alone writes there.
func (g *granter) tree(m *plan.Mount, judged bool) {
	access := uint64(llReadFile | llReadDir | llExecute)
	if m.NoExec {
		access &^= llExecute
		if m.Why != "" { // else the kernel's own: /sys
			g.noexec = append(g.noexec, m.Target)
		}
	}
	if m.Access == plan.ReadWrite && !judged {
		access |= g.l.HandledFS &^ (llExecute | llIoctlDev)
	}
	st, err := g.in.FS.Lstat(m.Target)
	if err != nil {
		return
	}
	g.below(m.Target, st.Type, access, judged)
}

func (g *granter) below(p string, typ host.Type, access uint64, judged bool) {
	switch typ {
	case host.Dir:
	case host.File:
		g.add(p, access&llOfFiles)
		return
	default: // a link leads to what is granted or to nothing, and the others are not part of a view
		return
	}
	inside := g.coveredIn(p)
	if len(inside) == 0 {
		g.add(p, access)
		return
	}
	g.add(p, llReadDir)
	g.listed = append(g.listed, p)
	if judged {
		g.split = append(g.split, p)
	}
	list, err := g.in.FS.ReadDir(p)
	if err != nil || len(g.l.Rules)+len(list) > maxGranted {
		g.cut = append(g.cut, p)
		return
	}
	for _, e := range list {
		if child := path.Join(p, e.Name); !slices.Contains(inside, child) {
			g.below(child, e.Type, access, judged)
		}
	}
}

// coveredIn are the paths below a directory that exist and must stay out of reach. Nothing connects to a socket, so
// there is no need to keep one from being read.
func (g *granter) coveredIn(dir string) (out []string) {
	for _, c := range g.covered {
		if c == dir || !host.Within(c, dir) {
			continue
		}
		if st, err := g.in.FS.Lstat(c); err == nil && st.Type != host.Socket {
			out = append(out, c)
		}
	}
	return out
}

func (g *granter) losses() (out []Loss) {
	if len(g.split) > 0 {
		out = append(out, Loss{What: "programs made in " + plan.Few(quoted(g.split), 4, ", "),
			Why: "each of these directories holds a hidden name, so only what stood in them at the start can be run",
			Fix: "keep what is hidden in a directory of its own"})
	}
	if len(g.listed) > 0 {
		out = append(out, Loss{What: "names in " + plan.Few(quoted(g.listed), 4, ", "),
			Why: "where a name is hidden the directory can still be listed, with each one below it, hidden ones too, and what " +
				"it holds later is not shown"})
	}
	if len(g.noexec) > 0 {
		out = append(out, Loss{What: "noexec of " + plan.Few(quoted(g.noexec), 4, ", "),
			Why: "Landlock refuses to execute what lies there, and not to map it as code"})
	}
	if len(g.cut) > 0 {
		out = append(out, Loss{What: "files in " + plan.Few(quoted(g.cut), 4, ", "),
			Why: "too many names stand beside a hidden one, so none of them is granted"})
	}
	return out
}

func quoted(list []string) []string {
	out := make([]string, len(list))
	for i, p := range list {
		out[i] = plan.Bytes(p).Quote()
	}
	return out
}

// inPlaceLosses are those of every plan without namespaces.
func (in *Input) inPlaceLosses(p *plan.Plan) []Loss {
	const fix = "user namespaces or sbx-helper, see sbx doctor"
	out := []Loss{
		{What: "absence", Why: inPlaceWhy + ", so what is not granted is refused (Permission denied) and not out of " +
			"sight: names, sizes and times can be looked at", Fix: fix},
		{What: "processes", Why: "the host's are listed in /proc with their command lines, and beside them its mounts, " +
			"connections, locks, queues and the names of your keys; memory, environment and files of processes are not to be " +
			"had", Fix: fix},
		{What: "loopback and sockets", Why: "the network is the host's, so there is none at all: no 127.0.0.1, no unix " +
			"sockets but pairs, no System V or POSIX queues", Fix: fix},
		{What: "/tmp, /dev/shm, /dev/pts and the host name", Why: "they are the host's, so the first three are closed: " +
			"TMPDIR is a folder of the session's, and no further terminal can be opened", Fix: fix},
		{What: "late secrets", Why: "a secret that the host puts into a granted tree while the session runs is seen there",
			Fix: fix},
	}
	if in.Asks {
		out = append(out, Loss{What: "questions", Why: "nothing can be mounted by an answer, so what is not granted is " +
			"refused, as with --static", Fix: fix})
	}
	if !p.Scoped() {
		out = append(out, Loss{What: "signals", Why: "Landlock of this kernel knows none (ABI 6), so programs can end " +
			"others of yours outside, and what they leave behind may outlive the session", Fix: "Linux 6.12, or " + fix})
	}
	if p.Landlock.ABI < 5 {
		out = append(out, Loss{What: "devices", Why: "Landlock of this kernel knows no ioctl (ABI 5), so a device that is " +
			"open already takes any that the filter lets pass", Fix: "Linux 6.10"})
	}
	return out
}

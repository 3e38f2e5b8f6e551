//go:build linux

package bwrap

import (
	"maps"
	"path"
	"slices"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"sbx.example/sbx/broker/plan"
)

// Where an operation takes place, and what is made or shown there if it is missing.

// parents makes the directories above an operation's place and says what is there.
func (d *drawing) parents(o *operation) (found, error) { return d.parentsOf(o, true) }

func (d *drawing) parentsOf(o *operation, follow bool) (found, error) {
	// Of what its owner's group, or others, cannot reach, the directories above are not theirs either.
	mode := uint32(0o755)
	if o.perms >= 0 && o.perms&0o070 == 0 {
		mode &^= 0o050
	}
	if o.perms >= 0 && o.perms&0o007 == 0 {
		mode &^= 0o005
	}
	f, errno := walk(o.dest, d.at, follow)
	if n := len(f.rest) - 1; errno == 0 && n > 0 {
		if errno = d.makeAll(f.path, f.rest[:n], mode); errno == 0 {
			f, errno = walk(o.dest, d.at, follow)
		}
	}
	if errno != 0 {
		return f, failErrno(errno, "Can't mkdir parents for %s", o.dest)
	}
	return f, nil
}

// makeAll makes directories, each in the one before it, that stay when nothing is mounted on them.
func (d *drawing) makeAll(p string, names []string, mode uint32) syscall.Errno {
	for _, n := range names {
		own := d.of(p).own
		if errno := d.create(p, n, entry{kind: directory}, mode); errno != 0 {
			return errno
		}
		if p = path.Join(p, n); !own {
			d.mount(plan.Mount{Kind: plan.Tmpfs, Target: p, Mode: mode}, &layer{target: p, own: true})
		}
	}
	return 0
}

// directory is the place of an operation that wants a directory, made if it is missing.
func (d *drawing) directory(o *operation, mode uint32) (string, error) {
	return d.place(o, directory, mode, "Can't mkdir %s")
}

// aFile is directory for a file.
func (d *drawing) aFile(o *operation) (string, error) {
	return d.place(o, regular, 0o444, "Can't create file at %s")
}

func (d *drawing) place(o *operation, want kind, mode uint32, failure string) (string, error) {
	f, err := d.parents(o)
	if err != nil {
		return "", err
	}
	errno := syscall.Errno(0)
	switch {
	case len(f.rest) > 0:
		errno = d.create(f.path, f.rest[0], entry{kind: want}, mode)
	case want == directory && f.kind != directory:
		errno = unix.ENOTDIR
	case want != directory && f.kind == directory:
		errno = unix.EISDIR
	}
	if errno != 0 {
		return "", failErrno(errno, failure, o.dest)
	}
	return path.Join(f.path, path.Join(f.rest...)), nil
}

// create plans that a name that is missing is there. In a directory of the host's it is shown and not made.
func (d *drawing) create(p, n string, e entry, mode uint32) syscall.Errno {
	l := d.of(p)
	at := strings.TrimSuffix(p, "/") + "/" + n
	switch {
	case len(n) > 255:
		return unix.ENAMETOOLONG
	case l.own:
		d.make(at, e, mode)
		return 0
	case l.kernel:
		return unix.ENOENT
	case l.ro:
		return unix.EROFS
	}
	dir := l.behind(p)
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err == nil && st.Flags&unix.ST_RDONLY != 0 {
		return unix.EROFS
	}
	if err := unix.Access(dir, unix.W_OK|unix.X_OK); err != nil {
		errno, _ := err.(syscall.Errno)
		return errno
	}
	if d.within && p != "/" && (st.Type == unix.FUSE_SUPER_MAGIC || st.Type == unix.TMPFS_MAGIC) {
		return d.point(at, l, e)
	}
	if !d.fuse || p == "/" {
		return unix.ENOSYS
	}
	if l.served == nil {
		l.served = map[string][]name{}
	}
	l.served[p] = append(l.served[p], name{n, e})
	l.made[at] = e
	return 0
}

// point plans that the sandbox around this one makes a name: it knows what that is for.
func (d *drawing) point(at string, l *layer, e entry) syscall.Errno {
	m := plan.Mount{Kind: plan.PointFile, Target: at}
	switch e.kind {
	case link:
		return unix.ENOSYS
	case directory:
		m.Kind = plan.PointDir
	}
	d.add(m)
	l.made[at] = e
	return 0
}

// make plans something in a tmpfs of the sandbox's own.
func (d *drawing) make(at string, e entry, mode uint32) {
	d.of(path.Dir(at)).made[at] = e
	switch e.kind {
	case directory:
		d.add(plan.Mount{Kind: plan.Dir, Target: at, Mode: mode})
	case link:
		d.add(plan.Mount{Kind: plan.Symlink, Target: at, Source: e.text})
	default:
		d.add(plan.Mount{Kind: plan.File, Target: at, Mode: mode})
	}
}

// finish returns the mounts, with a served directory wherever one shows a name that the host does not have.
func (d *drawing) finish() (mounts []plan.Mount, served []plan.GateDir, err error) {
	fuses, shown := 0, map[string][]name{}
	for i, s := range d.steps {
		if i == 1 && d.askServed() {
			fuses++
			mounts = append(mounts, plan.Mount{Kind: plan.AskServer, Target: "/asked", Access: plan.ReadOnly})
		}
		if s.layer == nil || s.layer.served == nil {
			mounts = append(mounts, s.Mount)
			continue
		}
		tops := s.layer.tops()
		if tops[0] != s.Target {
			mounts = append(mounts, s.Mount)
		}
		for _, top := range tops {
			if fuses++; fuses > plan.MaxFuse {
				return nil, nil, fail("Can't serve more than %d directories", plan.MaxFuse)
			}
			from := s.layer.behind(top)
			mounts = append(mounts, plan.Mount{Kind: plan.Fuse, Target: top, Source: from, Access: plan.ReadWrite,
				Hide: d.hiddenIn(from)})
			sockets, _ := d.readable(from)
			for _, n := range sockets {
				mounts = append(mounts, plan.Mount{Kind: plan.Bind, Target: top + "/" + n, Source: from + "/" + n,
					Access: plan.ReadWrite, Optional: true})
			}
		}
		for p, list := range s.layer.shown(tops) {
			for _, n := range list { // the same place may be shown twice, one on the other
				if !slices.ContainsFunc(shown[p], func(m name) bool { return m.name == n.name }) {
					shown[p] = append(shown[p], n)
				}
			}
			shown[p] = append([]name{}, shown[p]...) // known, though it may have no names
		}
	}
	for p, list := range shown {
		served = append(served, gateDir(p, list))
	}
	slices.SortFunc(served, func(a, b plan.GateDir) int { return strings.Compare(string(a.Path), string(b.Path)) })
	return mounts, served, nil
}

// tops are the directories of a layer that have to be served, without those that lie in another.
func (l *layer) tops() (out []string) {
	for p := range l.served {
		out = append(out, p)
	}
	return outermost(out)
}

// outermost are the paths of a list that do not lie in another of it, each once, sorted. The list is changed.
func outermost(list []string) (out []string) {
	slices.Sort(list)
	for _, p := range list { // what holds p comes before it
		if !slices.ContainsFunc(out, func(top string) bool { return inside(p, top) != "" }) {
			out = append(out, p)
		}
	}
	return out
}

// shown are the names that the directories show whatever becomes of the host's: beside those that are missing there all
// that something is mounted on. Else the kernel would take a mount away when the host replaces what is below it.
func (l *layer) shown(tops []string) map[string][]name {
	out := maps.Clone(l.served)
	for _, c := range l.covered {
		dir, base := path.Split(c.name)
		dir = path.Clean(dir)
		if !slices.ContainsFunc(tops, func(top string) bool { return inside(dir, top) != "" }) ||
			slices.ContainsFunc(out[dir], func(n name) bool { return n.name == base }) {
			continue
		}
		out[dir] = append(slices.Clip(out[dir]), name{base, c.entry})
	}
	return out
}

func gateDir(p string, list []name) plan.GateDir {
	out := plan.GateDir{Path: plan.Bytes(p)}
	for _, n := range list {
		g := plan.GateName{Name: plan.Bytes(n.name), Kind: plan.File}
		switch n.kind {
		case directory:
			g.Kind = plan.Dir
		case link:
			g.Kind, g.Target = plan.Symlink, plan.Bytes(n.text)
		}
		out.Names = append(out.Names, g)
	}
	return out
}

//go:build linux

package bwrap

import (
	"fmt"
	"path"
	"syscall"

	"golang.org/x/sys/unix"

	"sbx.example/sbx/broker/plan"
)

// host is what planning knows of the caller's side.
type host struct {
	cwd      string
	root     bool   // the caller is uid 0
	memory   uint64 // bytes
	console  string // the terminal of standard output; "" if it is none
	fuse     bool   // /dev/fuse can be opened
	within   bool   // this is a sandbox of sbx's, which serves what can be written
	pid      bool   // the sandbox has a PID namespace of its own
	load     func(fd int) ([]byte, error)
	readable func(dir string) ([]string, error) // sockets and pipes in a directory
	under    Under                              // nil: the words alone decide
	asks     Asks                               // nil: nobody is asked
}

// drawing is a plan of mounts that grows.
type drawing struct {
	host
	view
	steps  []step
	hidden []string // of the host's paths, see Under
	data   int      // bytes of data that files are to have
}

// step is one mount, with the layer that it makes, if it makes one.
type step struct {
	plan.Mount
	layer *layer
}

// draw plans the operations of r.
func draw(r *request, h host) (*drawing, error) {
	d := &drawing{host: h, view: view{host: tree{}, top: map[string]int{}}}
	for i := range r.ops {
		if err := d.sources(&r.ops[i]); err != nil {
			return nil, err
		}
	}
	d.whetherAsked(r.ops)
	if err := d.enforce(r.ops); err != nil {
		return nil, err
	}
	d.mount(plan.Mount{Kind: plan.Tmpfs, Target: "/", Mode: 0o755}, &layer{target: "/", own: true})
	for i := range r.ops {
		if err := d.operation(&r.ops[i]); err != nil {
			return nil, err
		}
	}
	return d, nil
}

// sources resolves what an operation shows of the host: all of them are looked up before anything is mounted.
func (d *drawing) sources(o *operation) error {
	resolve := func(s *string) error {
		p, err := d.view.host.real(*s, d.cwd)
		if err == unix.ENOENT && o.try {
			*s = ""
			return nil
		}
		if err != nil {
			return failErrno(err, "Can't find source path %s", *s)
		}
		*s = p
		return nil
	}
	switch o.do {
	case bindRW, bindRO, bindDev, overlayRW:
		err := resolve(&o.source)
		if err == nil && o.source != "" && (d.under != nil || d.asks != nil) {
			o.kept, err = d.kept(o.source)
		}
		if err != nil {
			return err
		}
	}
	if o.do == overlayRW {
		if err := resolve(&o.work); err != nil {
			return err
		}
	}
	for i := range o.layers {
		if err := resolve(&o.layers[i]); err != nil {
			return err
		}
	}
	return nil
}

// operation plans one.
func (d *drawing) operation(o *operation) error {
	switch o.do {
	case bindRW, bindRO, bindDev:
		return d.bind(o)
	case overlayRW, overlayTmp, overlayRO:
		return d.overlay(o)
	case proc:
		return d.proc(o)
	case dev:
		return d.dev(o)
	case tmpfs:
		p, err := d.directory(o, 0o755)
		if err == nil {
			l := &layer{target: p, own: true, hides: d.hides(p, directory)}
			d.mount(plan.Mount{Kind: plan.Tmpfs, Target: p, Mode: uint32(o.perms), Size: int64(o.size)}, l)
			d.askDir(l, uint32(o.perms))
		}
		return err
	case mqueue:
		p, err := d.directory(o, 0o755)
		if err == nil {
			err = d.below(o, p)
		}
		if err == nil {
			d.mount(plan.Mount{Kind: plan.Mqueue, Target: p}, &layer{target: p, kernel: true})
		}
		return err
	case dir:
		return d.dir(o)
	case fileCopy, fileRW, fileRO:
		return d.file(o)
	case symlink:
		return d.symlink(o)
	case remount:
		return d.remount(o)
	}
	return d.chmod(o)
}

// add plans what makes no layer.
func (d *drawing) add(m plan.Mount) { d.steps = append(d.steps, step{Mount: m}) }

// mount plans a mount. What is on the root covers all that was there.
func (d *drawing) mount(m plan.Mount, l *layer) {
	if m.Kind == plan.Tmpfs { // bounded as the kernel does it where nobody says how
		if m.Size == 0 {
			m.Size = int64(d.memory / 2)
		}
		m.Inodes = int64(d.memory / 2 / 4096)
	}
	if m.Target == "/" {
		d.steps = nil
	} else {
		below := d.of(path.Dir(m.Target))
		below.covered = append(below.covered, name{m.Target, d.at(m.Target)})
	}
	d.push(l)
	d.steps = append(d.steps, step{m, l})
}

// below refuses what only a directory below the root can be.
func (d *drawing) below(o *operation, p string) error {
	if p == "/" {
		return fail("Can't mount on %s: sbx mounts directories of the host and tmpfs there, and nothing else", o.dest)
	}
	return nil
}

func (d *drawing) bind(o *operation) error {
	if o.source == "" {
		return nil
	}
	m := plan.Mount{Kind: plan.Bind, Source: o.source, Access: plan.ReadWrite}
	switch o.do {
	case bindRO:
		m.Access = plan.ReadOnly
	case bindDev:
		m.Kind, m.Device = plan.DevBind, true
	}
	if o.fd >= 0 {
		var st unix.Stat_t
		if err := unix.Fstat(o.fd, &st); err != nil {
			return failErrno(err, "Can't stat fd %d", o.fd)
		}
		m.Dev, m.Ino = st.Dev, st.Ino
	}
	var err error
	if d.view.host.at(o.source).kind == directory {
		m.Target, err = d.directory(o, 0o755)
	} else {
		m.Target, err = d.aFile(o)
	}
	if m.Source == "/" && m.Target != "/" {
		m.Kind = plan.HostRoot
	}
	l := &layer{target: m.Target, sources: []string{o.source}, ro: o.do == bindRO}
	if err == nil {
		err = d.guard(o, &m, l)
	}
	if err == errShown {
		return nil
	}
	if err == nil {
		d.mount(m, l)
		d.cover(l)
		err = d.guardBelow(o, m.Target)
	}
	return err
}

func (d *drawing) overlay(o *operation) error {
	p, err := d.directory(o, 0o755)
	if err == nil {
		err = d.below(o, p)
	}
	if err != nil {
		return err
	}
	m := plan.Mount{Kind: plan.Overlay, Target: p, Lower: o.layers, Access: plan.ReadWrite}
	l := &layer{target: p, sources: o.layers}
	switch o.do {
	case overlayTmp:
		m.Kind, l.own = plan.TmpOverlay, true
	case overlayRO:
		m.Access, l.ro = plan.ReadOnly, true
	default:
		m.Upper, m.Work = o.source, o.work
		l.sources = append([]string{o.source}, o.layers...)
		l.kernel = true
	}
	d.mount(m, l)
	d.cover(l)
	return nil
}

func (d *drawing) proc(o *operation) error {
	p, err := d.directory(o, 0o755)
	if err == nil {
		err = d.below(o, p)
	}
	if err != nil {
		return err
	}
	m := plan.Mount{Kind: plan.ProcAll, Target: p}
	if !d.pid {
		m.Kind, m.Source, m.Access = plan.Bind, "/proc", plan.ReadWrite
	}
	d.mount(m, &layer{target: p, sources: []string{"/proc"}, kernel: true})
	if d.root { // nobody else may write there
		for _, n := range [...]string{"sys", "sysrq-trigger", "irq", "bus"} {
			d.add(plan.Mount{Kind: plan.Protect, Target: p + "/" + n, Access: plan.ReadOnly, Optional: true})
		}
	}
	return nil
}

func (d *drawing) dev(o *operation) error {
	p, err := d.directory(o, 0o755)
	if err == nil {
		err = d.below(o, p)
	}
	if err != nil {
		return err
	}
	d.mount(plan.Mount{Kind: plan.Tmpfs, Target: p, Mode: 0o755}, &layer{target: p, own: true})
	for _, n := range [...]string{"null", "zero", "full", "random", "urandom", "tty"} {
		d.make(p+"/"+n, entry{kind: regular}, 0o444)
		d.mount(plan.Mount{Kind: plan.Bind, Source: "/dev/" + n, Target: p + "/" + n, Device: true, Access: plan.ReadWrite},
			&layer{target: p + "/" + n, sources: []string{"/dev/" + n}})
	}
	for i, n := range [...]string{"stdin", "stdout", "stderr"} {
		d.make(p+"/"+n, entry{kind: link, text: fmt.Sprintf("/proc/self/fd/%d", i)}, 0)
	}
	d.make(p+"/fd", entry{kind: link, text: "/proc/self/fd"}, 0)
	d.make(p+"/core", entry{kind: link, text: "/proc/kcore"}, 0)
	d.make(p+"/shm", entry{kind: directory}, 0o755)
	d.make(p+"/pts", entry{kind: directory}, 0o755)
	d.mount(plan.Mount{Kind: plan.Devpts, Target: p + "/pts"}, &layer{target: p + "/pts", kernel: true})
	d.make(p+"/ptmx", entry{kind: link, text: "pts/ptmx"}, 0)
	if d.console != "" {
		d.make(p+"/console", entry{kind: regular}, 0o444)
		d.mount(plan.Mount{Kind: plan.DevBind, Device: true, Source: d.console, Target: p + "/console",
			Access: plan.ReadWrite},
			&layer{target: p + "/console", sources: []string{d.console}})
	}
	return nil
}

func (d *drawing) dir(o *operation) error {
	f, err := d.parents(o)
	if err != nil {
		return err
	}
	switch {
	case len(f.rest) == 0 && f.kind != directory:
		return failErrno(unix.ENOTDIR, "Can't mkdir %s", o.dest)
	case len(f.rest) > 0:
		if errno := d.makeAll(f.path, f.rest, uint32(o.perms)); errno != 0 {
			return failErrno(errno, "Can't mkdir %s", o.dest)
		}
	}
	return nil
}

func (d *drawing) symlink(o *operation) error {
	f, err := d.parentsOf(o, false)
	if err != nil {
		return err
	}
	if len(f.rest) == 0 {
		switch {
		case f.kind != link:
			return fail("Can't make symlink at %s: destination exists and is not a symlink", o.dest)
		case f.text != o.source:
			return fail("Can't make symlink at %s: existing destination is %s", o.dest, f.text)
		}
		return nil
	}
	if errno := d.create(f.path, f.rest[0], entry{kind: link, text: o.source}, 0); errno != 0 {
		return failErrno(errno, "Can't make symlink at %s", o.dest)
	}
	return nil
}

func (d *drawing) file(o *operation) error {
	m := plan.Mount{Kind: plan.Data, Mode: uint32(o.perms), Access: plan.ReadWrite}
	if o.do == fileCopy {
		return d.copyTo(o, m)
	}
	if o.do == fileRO {
		m.Access = plan.ReadOnly
	}
	if err := d.content(o, &m); err != nil {
		return err
	}
	var err error
	if m.Target, err = d.aFile(o); err == nil {
		l := &layer{target: m.Target, sources: []string{"/dev/null"}, ro: o.do == fileRO}
		if l.ro {
			d.askFile(l, &m)
		}
		d.mount(m, l)
	}
	return err
}

// content reads what is to be in a file.
func (d *drawing) content(o *operation, m *plan.Mount) error {
	if _, err := d.parents(o); err != nil {
		return err
	}
	data, err := d.load(o.fd)
	if d.data += len(data); d.data > mostData {
		err = unix.EFBIG
	}
	if err != nil {
		return failErrno(err, "Can't write data to file %s", o.dest)
	}
	m.Source = string(data)
	return nil
}

// copyTo plans a file in a directory of the sandbox's own, and one that covers what the host has elsewhere.
func (d *drawing) copyTo(o *operation, m plan.Mount) error {
	f, err := d.parents(o)
	if err != nil {
		return err
	}
	l, errno := d.of(f.path), syscall.Errno(0)
	m.Target = path.Join(f.path, path.Join(f.rest...))
	own := l.own && (len(f.rest) > 0 || l.target != f.path)
	switch {
	case len(f.rest) == 0 && f.kind == directory:
		errno = unix.EISDIR
	case l.ro:
		errno = unix.EROFS
	case own:
		l.made[m.Target] = entry{kind: regular}
	case len(f.rest) > 0:
		errno = d.create(f.path, f.rest[0], entry{kind: regular}, 0o444)
	}
	if errno != 0 {
		return failErrno(errno, "Can't create file %s", o.dest)
	}
	if err := d.content(o, &m); err != nil {
		return err
	}
	if own {
		m.Kind = plan.Copy
		d.add(m)
		return nil
	}
	d.mount(m, &layer{target: m.Target, sources: []string{"/dev/null"}})
	return nil
}

func (d *drawing) remount(o *operation) error {
	f, err := d.parents(o)
	if err != nil {
		return err
	}
	at := "/newroot" + f.path
	if f.path == "/" {
		at = "/newroot"
	}
	switch {
	case len(f.rest) > 0:
		return failErrno(unix.ENOENT, "Can't remount readonly on /newroot%s: realpath(destination)", o.dest)
	case d.of(f.path).target != f.path && !d.hostMount(f.path):
		return fail("Can't remount readonly on %s: Unable to find %q in mount table", at, at)
	}
	if l := d.of(f.path); l.target == f.path {
		l.ro = true
	}
	d.add(plan.Mount{Kind: plan.Remount, Target: f.path, Access: plan.ReadOnly})
	return nil
}

// hostMount says whether something is mounted on the host at what is shown at p.
func (d *drawing) hostMount(p string) bool {
	l := d.of(p)
	if len(l.sources) != 1 || l.made[p].kind != missing {
		return false
	}
	var st unix.Statx_t
	err := unix.Statx(unix.AT_FDCWD, l.behind(p), unix.AT_NO_AUTOMOUNT|unix.AT_SYMLINK_NOFOLLOW, 0, &st)
	return err == nil && st.Attributes&unix.STATX_ATTR_MOUNT_ROOT != 0
}

func (d *drawing) chmod(o *operation) error {
	f, errno := walk(o.dest, d.at, true)
	if errno == 0 && len(f.rest) > 0 {
		errno = unix.ENOENT
	}
	if errno != 0 {
		mode := fmt.Sprintf("%#o", o.perms)
		return failErrno(errno, "Can't chmod %s %s", mode, o.dest)
	}
	if f.path == "/" {
		return d.below(o, f.path)
	}
	d.add(plan.Mount{Kind: plan.Chmod, Target: f.path, Mode: uint32(o.perms)})
	return nil
}

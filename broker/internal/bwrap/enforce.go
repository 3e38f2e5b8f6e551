//go:build linux

package bwrap

import (
	"path"
	"slices"

	"golang.org/x/sys/unix"

	"sbx.example/sbx/audit"
	"sbx.example/sbx/broker/internal/gate/gatefs"
	"sbx.example/sbx/broker/internal/gate/served"
	hosts "sbx.example/sbx/broker/internal/host"
	"sbx.example/sbx/broker/plan"
)

// Under is what holds under the words where somebody has said so (bwrap.enforce): sbx's own secrets and guard. Package
// live knows them.
type Under interface {
	// Hidden are the host's paths, each with all below it, that nobody is shown of what the words show, to be read and to
	// be written.
	Hidden(read, write []string) ([]string, error)
	// Holds says how a tree or file is held that the words show to be written: fixed is not written all the same, and a
	// guarded directory is served.
	Holds(p string) (fixed, guarded bool)
	// Planned is told what the sandbox will be, and gives it limits.
	Planned(p *plan.Plan)
	// Guard returns how a directory of the host's is served, and says what holds in it. Init is process 1.
	Guard(init int, m *plan.Mount, root *served.Dir) (gatefs.Options, error)
	// Blocked ends it, and says what was refused.
	Blocked() []audit.Event
}

// kernels are the file systems in which the kernel shows itself (statfs(2)).
var kernels = [...]int64{unix.PROC_SUPER_MAGIC, unix.SYSFS_MAGIC, unix.DEVPTS_SUPER_MAGIC, unix.CGROUP_SUPER_MAGIC,
	unix.CGROUP2_SUPER_MAGIC, unix.HUGETLBFS_MAGIC, unix.SECURITYFS_MAGIC, unix.DEBUGFS_MAGIC, unix.TRACEFS_MAGIC,
	unix.BPF_FS_MAGIC, unix.BINFMTFS_MAGIC, unix.EFIVARFS_MAGIC, unix.PSTOREFS_MAGIC, unix.SELINUX_MAGIC,
	unix.NSFS_MAGIC, mqueueMagic}

const (
	mqueueMagic = 0x19800202 // linux/ipc/mqueue.c
	shm         = "/dev/shm"
)

// ofKernel says whether what the host has at a path is the kernel's, where people keep nothing: a device, one of its
// file systems, or the one at /dev, which is of the same type as others. Where that holds /dev/shm too, it is not.
func ofKernel(p string) bool {
	var at, dev unix.Stat_t
	var fs unix.Statfs_t
	if unix.Stat(p, &at) != nil || unix.Statfs(p, &fs) != nil {
		return false
	}
	kind := at.Mode & unix.S_IFMT
	return kind == unix.S_IFCHR || kind == unix.S_IFBLK || slices.Contains(kernels[:], int64(fs.Type)) ||
		inside(p, "/dev") != "" && inside(p, shm) == "" && unix.Stat("/dev", &dev) == nil && at.Dev == dev.Dev
}

// kept are the host's places in which people keep things of those that a bind of p shows: p, or, as mounts below it are
// shown as well, what is not the kernel's below /dev. In /proc and /sys nobody makes a place for one.
func (d *drawing) kept(p string) ([]string, error) {
	switch {
	case !ofKernel(p):
		return []string{p}, nil
	case inside(p, "/dev") == "":
		return nil, nil
	}
	mounts, err := hosts.Mounts()
	if err != nil {
		return nil, err
	}
	var out []string
	for _, at := range append(hosts.Below(mounts, p), shm) {
		if k := d.view.host.at(at).kind; inside(at, p) != "" && (k == directory || k == regular) && !ofKernel(at) {
			out = append(out, at)
		}
	}
	return outermost(out), nil
}

// shown are the host's paths that operations show to be read, and to be written.
func shown(ops []operation) (read, write []string) {
	for i := range ops {
		switch o := &ops[i]; o.do {
		case bindRO:
			read = append(read, o.kept...)
		case bindRW, bindDev, overlayRW:
			write = append(write, o.kept...)
		}
		read = append(read, ops[i].layers...)
	}
	return read, write
}

// enforce asks what stays hidden of what the operations show.
func (d *drawing) enforce(ops []operation) (err error) {
	switch {
	case d.under != nil:
		for i := range ops {
			if ops[i].do == overlayRW {
				return fail("bwrap.enforce: what --overlay writes to %s cannot be guarded: use --tmp-overlay", ops[i].source)
			}
		}
		d.hidden, err = d.under.Hidden(shown(ops))
	case d.asks != nil:
		d.hidden = d.asks.Covered()
	}
	return err
}

// errShown says that nothing is to be mounted: the same is there already, and guarded.
const errShown = failure("it is shown already")

// serves says whether what is shown at a place is that directory of the host's, by who serves one above it, and nothing
// has been mounted in it since: that a bind opens again.
func (d *drawing) serves(at, source string) bool {
	l := d.of(at)
	if l.served == nil || l.ro || l.made[at].kind != missing || l.behind(at) != source {
		return false
	}
	for p, i := range d.top {
		if i > d.top[l.target] && p != at && inside(p, at) != "" {
			return false
		}
	}
	return true
}

// guard settles how a bind that is written is held. A directory is served, so that guarded names stay as they are in it
// and secrets do not exist; what is guarded itself is read-only.
func (d *drawing) guard(o *operation, m *plan.Mount, l *layer) error {
	if d.under == nil || l.ro || !slices.Contains(o.kept, o.source) {
		return nil
	}
	secret := slices.ContainsFunc(d.hidden, func(h string) bool { return inside(o.source, h) != "" }) // it is covered
	switch fixed, guarded := d.under.Holds(o.source); {
	case fixed, secret:
		m.Access, l.ro = plan.ReadOnly, true
	case !guarded || d.view.host.at(o.source).kind != directory:
	case d.serves(m.Target, o.source):
		return errShown
	case o.source == "/" || m.Target == "/":
		return fail("bwrap.enforce: %s cannot be written as a whole: bind it read-only, and what is to be written on it",
			o.source)
	case !d.fuse:
		return fail("bwrap.enforce: %s cannot be guarded: /dev/fuse cannot be opened", o.source)
	default:
		l.served = map[string][]name{m.Target: nil}
	}
	return nil
}

// guardBelow guards what people keep below a directory of the kernel's that is bound to be written at target.
func (d *drawing) guardBelow(o *operation, target string) error {
	if d.under == nil || o.do == bindRO {
		return nil
	}
	for _, k := range o.kept {
		if rel := inside(k, o.source); rel != "/" {
			below := operation{do: bindRW, source: k, dest: path.Join(target, rel), perms: -1, fd: -1, kept: []string{k}}
			if err := d.bind(&below); err != nil {
				return err
			}
		}
	}
	return nil
}

// cover covers what a mount shows of what is hidden. What is served is hidden by who serves it.
func (d *drawing) cover(l *layer) {
	if l.served != nil {
		return
	}
	for _, h := range d.hidden {
		for _, s := range l.sources {
			at, what := l.target, s
			if rel := inside(h, s); inside(s, h) == "" && rel != "" {
				at, what = path.Clean(l.target+rel), h
			} else if inside(s, h) == "" {
				continue
			}
			switch d.view.host.at(what).kind {
			case directory:
				d.mount(plan.Mount{Kind: plan.Tmpfs, Target: at, Mode: 0o755, Size: 64 << 10}, &layer{target: at, own: true})
			case regular:
				// A device that does not work here: it cannot be opened, and something can be mounted on it.
				d.mount(plan.Mount{Kind: plan.Bind, Source: "/dev/null", Target: at, Access: plan.ReadOnly},
					&layer{target: at, sources: []string{"/dev/null"}, ro: true})
			}
		}
	}
}

// hiddenIn are the names below a directory of the host's that its server hides.
func (d *drawing) hiddenIn(dir string) (out []string) {
	for _, h := range d.hidden {
		if rel := inside(h, dir); rel != "" && rel != "/" {
			out = append(out, rel[1:])
		}
	}
	return out
}

package planner

import (
	"path"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"sbx.example/sbx/broker/internal/host"
	"sbx.example/sbx/broker/plan"
)

// addSystem puts the sandbox's own places into the tree: devices, proc, sys, temporary directories.
func (v *view) addSystem() {
	in := v.in
	tmp := func(p string, mode uint32, noexec bool) []plan.Mount {
		return []plan.Mount{{Kind: plan.Tmpfs, Target: p, Size: in.TmpSize, Inodes: in.TmpSize >> 12, Mode: mode,
			NoExec: noexec}}
	}
	v.root.at("/dev").special = v.ownTree("/dev", devices(in))
	v.root.at("/proc").special = []plan.Mount{{Kind: plan.Proc, Target: "/proc"}}
	v.late = append(v.late, protectProc(in)...)
	v.root.at("/sys").special = v.ownTree("/sys", sysfs(in))
	v.root.at("/tmp").special = tmp("/tmp", 0o1777, false)
	v.root.at("/var/tmp").special = tmp("/var/tmp", 0o1777, false)
	v.root.at("/run").special = append(tmp("/run", 0o755, true),
		plan.Mount{Kind: plan.Dir, Target: "/run/lock", Mode: 0o1777}, plan.Mount{Kind: plan.Dir, Target: "/run/user",
			Mode: 0o755},
		plan.Mount{Kind: plan.Dir, Target: "/run/user/" + strconv.Itoa(int(in.Facts.UID)), Mode: 0o700})
	if in.Tools != nil {
		dir := path.Dir(in.Tools[0].Path)
		v.root.at(dir).special = v.ownTree(dir, tools(in))
	}
	for _, f := range in.Folders {
		v.root.at(f.Path).special = []plan.Mount{{Kind: plan.Bind, Target: f.Path, Source: f.Source,
			Access: plan.ReadWrite, NoExec: true, Why: f.Why}}
	}
	v.addMachine()
	v.root.at("/var/run").link = "/run"
	v.root.at("/var/lock").link = "/run/lock"
}

// ownTree puts a place of the sandbox's own on a tmpfs where the root is the broker's, in which nothing is made.
func (v *view) ownTree(p string, ops []plan.Mount) []plan.Mount {
	if !v.in.Gate {
		return ops
	}
	v.late = append(v.late, plan.Mount{Kind: plan.Remount, Target: p, Access: plan.ReadOnly})
	return append([]plan.Mount{{Kind: plan.Tmpfs, Target: p, Size: 1 << 20, Inodes: 4096, Mode: 0o755, Why: "skeleton"}},
		ops...)
}

// tools are the names of tools, behind which the same program stands.
func tools(in *Input) (out []plan.Mount) {
	for _, t := range in.Tools {
		out = append(out, plan.Mount{Kind: plan.File, Target: t.Path, Mode: 0o644},
			plan.Mount{Kind: plan.Bind, Target: t.Path, Source: t.Client, Access: plan.ReadOnly, Why: t.Why})
	}
	return out
}

func devices(in *Input) []plan.Mount {
	out := make([]plan.Mount, 0, 32)
	names := []string{"null", "zero", "full", "random", "urandom", "tty"}
	if in.KVM {
		names = append(names, "kvm")
	}
	if in.Containers != nil && in.Facts.Fuse {
		names = append(names, "fuse")
	}
	// for networks of containers
	if in.Containers != nil && in.JoinNet && in.FS.Access("/dev/net/tun", unix.R_OK|unix.W_OK) {
		out = append(out, plan.Mount{Kind: plan.Dir, Target: "/dev/net", Mode: 0o755})
		names = append(names, "net/tun")
	}
	for _, n := range names {
		out = append(out, plan.Mount{Kind: plan.File, Target: "/dev/" + n, Mode: 0o666},
			plan.Mount{Kind: plan.Bind, Source: "/dev/" + n, Target: "/dev/" + n, Access: plan.ReadWrite, Device: true})
	}
	out = append(out, plan.Mount{Kind: plan.Dir, Target: "/dev/pts", Mode: 0o755}, plan.Mount{Kind: plan.Devpts,
		Target: "/dev/pts"},
		plan.Mount{Kind: plan.Dir, Target: "/dev/shm", Mode: 0o1777},
		plan.Mount{Kind: plan.Tmpfs, Target: "/dev/shm", Size: in.TmpSize, Inodes: in.TmpSize >> 12, Mode: 0o1777,
			NoExec: true})
	for _, l := range [][2]string{{"ptmx", "pts/ptmx"}, {"fd", "/proc/self/fd"}, {"stdin", "/proc/self/fd/0"},
		{"stdout", "/proc/self/fd/1"}, {"stderr", "/proc/self/fd/2"}} {
		out = append(out, plan.Mount{Kind: plan.Symlink, Target: "/dev/" + l[0], Source: l[1]})
	}
	return out
}

// protectProc takes away what proc shows or lets be written beyond the sandbox's own processes. For an
// ordinary user the kernel refuses most of it already; root is the owner of these files, also inside.
func protectProc(in *Input) []plan.Mount {
	out := []plan.Mount{{Kind: plan.Protect, Target: "/proc/sys", Access: plan.ReadOnly, Optional: true},
		{Kind: plan.Mask, Target: "/proc/keys", Optional: true}}
	if in.Facts.UID != 0 && !in.MapRoot {
		return append(out, plan.Mount{Kind: plan.Protect, Target: "/proc/sysrq-trigger", Access: plan.ReadOnly,
			Optional: true})
	}
	if !in.AsPID1 {
		// The files of an undumpable process belong to root, and hidepid does not hold for root's group.
		out = append(out, plan.Mount{Kind: plan.Protect, Target: "/proc/1", Access: plan.ReadOnly})
	}
	for _, d := range []string{"bus", "fs", "irq", "acpi", "scsi", "sysrq-trigger", "mtrr", "latency_stats"} {
		out = append(out, plan.Mount{Kind: plan.Protect, Target: "/proc/" + d, Access: plan.ReadOnly, Optional: true})
	}
	for _, f := range []string{"kcore", "kmsg", "timer_list", "sched_debug", "kpagecount", "kpageflags", "kpagecgroup",
		"key-users", "vmallocinfo", "slabinfo", "pagetypeinfo"} {
		out = append(out, plan.Mount{Kind: plan.Mask, Target: "/proc/" + f, Optional: true})
	}
	return out
}

// sysfs shows what libc and language runtimes read to count processors and memory nodes.
func sysfs(in *Input) []plan.Mount {
	out := []plan.Mount{}
	if c := in.Containers; c != nil { // podman wants to see what kind of control groups there are, also if there are none
		out = append(out, plan.Mount{Kind: plan.Dir, Target: "/sys/fs", Mode: 0o755}, plan.Mount{Kind: plan.Dir,
			Target: plan.CgroupPlace, Mode: 0o755})
		if c.Group != "" {
			out = append(out, plan.Mount{Kind: plan.Bind, Target: plan.CgroupPlace, Source: c.Group, Access: plan.ReadWrite,
				NoExec: true, Why: containersWhy})
		}
	}
	made := map[string]bool{"/sys": true}
	for _, p := range []string{"/sys/devices/system/cpu", "/sys/devices/system/node"} {
		st, err := in.FS.Lstat(p)
		if err != nil || st.Type != host.Dir {
			continue
		}
		var up []string
		for d := p; !made[d]; d = path.Dir(d) {
			up = append(up, d)
			made[d] = true
		}
		for i := len(up) - 1; i >= 0; i-- {
			out = append(out, plan.Mount{Kind: plan.Dir, Target: up[i], Mode: 0o755})
		}
		out = append(out, plan.Mount{Kind: plan.Bind, Target: p, Source: p, Access: plan.ReadOnly, NoExec: true})
	}
	return out
}

// Landlock access rights (landlock(7)) that a write needs. Reading is the mounts' business: a rule set
// cannot grow, and approvals must be able to. LANDLOCK_ACCESS_FS_TRUNCATE is left to the mounts too: where it
// is handled, the kernel walks every opened path up to its root, also for reading, which makes an open half as
// slow again (fs.c, hook_file_open).
const (
	llWriteFile  = 1 << 1
	llRemoveDir  = 1 << 4
	llRemoveFile = 1 << 5
	llMake       = 1<<6 | 1<<7 | 1<<8 | 1<<9 | 1<<10 | 1<<11 | 1<<12
	llRefer      = 1 << 13 // ABI 2
)

// writable says whether the program can make names in what m shows: the project, what was granted for writing, layers,
// the places of its own.
func writable(m *plan.Mount) bool {
	switch m.Kind {
	case plan.Tmpfs:
		return m.Target != "/" && m.Access != plan.ReadOnly && m.Why != "skeleton"
	case plan.Bind, plan.Overlay, plan.Fuse:
		return m.Target != "/" && m.Access == plan.ReadWrite && !m.Device
	}
	return false
}

// followNoLinks has the kernel follow no link in writable places, however they are shown, where fs.no_sym_follow says
// so.
func followNoLinks(p *plan.Plan, in *Input) []Loss {
	if !in.NoSymFollow {
		return nil
	}
	if !in.Facts.Since(5, 14) {
		return []Loss{{What: "fs.no_sym_follow", Why: "this kernel follows links in every mount",
			Fix: "a kernel from 5.14 on"}}
	}
	for i := range p.Mounts {
		p.Mounts[i].NoSymFollow = writable(&p.Mounts[i])
	}
	return nil
}

// Follows says whether a mount is of a single file that a person has granted, and shows what has its name as
// the session goes on: where the host puts another there, that is mounted.
func (in *Input) Follows(m *plan.Mount) bool {
	if in.InPlace || in.Direct || m.Kind != plan.Bind || m.Ino == 0 ||
		strings.HasPrefix(m.Why, "profile ") || path.Dir(m.Target) == "/" {
		return false
	}
	st, err := in.FS.Lstat(m.Source)
	return err == nil && st.Type == host.File
}

// addLandlock grants writing where the mounts do, and nowhere else.
func addLandlock(p *plan.Plan, in *Input) []Loss {
	abi := in.Facts.Landlock
	if in.NoLandlock {
		return nil
	}
	if in.nests() {
		return in.nestedLandlock(p, abi)
	}
	if abi < 2 { // ABI 1 forbids every rename between directories
		return []Loss{{What: "landlock",
			Why: "this kernel has none that can be used, so the mounts are the only line against writing",
			Fix: "a kernel from 5.19 on, with landlock in lsm="}}
	}
	l := &plan.Landlock{ABI: abi, HandledFS: llWriteFile | llRemoveDir | llRemoveFile | llMake | llRefer}
	if abi >= 6 {
		l.Scoped = plan.ScopeAbstract | plan.ScopeSignal
	}
	for i := range p.Mounts {
		m := &p.Mounts[i]
		if m.Target == "/" || slices.Contains(in.Ungranted, m.Target) {
			continue
		}
		// a relay: connecting to a socket needs no right to write
		if in.SessionDir != "" && path.Dir(m.Source) == in.SessionDir {
			continue
		}
		access, at := l.HandledFS, m.Target
		switch {
		case m.Kind == plan.Proc, m.Kind == plan.Devpts, m.Kind == plan.Tmpfs && writable(m):
		case writable(m), m.Device && m.Access == plan.ReadWrite:
			if st, err := in.FS.Lstat(m.Source); m.Device || m.Kind == plan.Bind && err == nil && st.Type != host.Dir {
				access &= llWriteFile
			}
			if m.Kind == plan.Bind && p.Judged(m.Target) { // the broker makes names there; pipes are opened inside
				access &= llWriteFile
			}
			if in.Follows(m) { // a rule is about the file, and cannot be made for the next one
				at = path.Dir(at)
			}
		default:
			continue
		}
		l.Rules = append(l.Rules, plan.LandlockRule{Path: plan.Bytes(at), Access: access})
	}
	if p.Gate != nil || in.Agent {
		l.Rules = append(l.Rules, in.gateRules(p, l.HandledFS)...)
	}
	if in.Only != nil {
		in.Only.landlock(l, p.Mounts)
	}
	p.Landlock = l
	return nil
}

func (v *view) copyLink(p string) error {
	text, err := v.in.FS.Readlink(p)
	if err != nil {
		return nil // gone meanwhile
	}
	v.op(plan.Mount{Kind: plan.Symlink, Target: p, Source: text})
	return nil
}

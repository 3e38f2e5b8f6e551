//go:build linux

package main

import (
	"slices"
	"strings"

	"sbx.example/sbx/shared/plan"
	"sbx.example/sbx/shared/wire"
)

// The permission table. What has no line is refused. Each line says why it is safe from a hostile caller,
// given what holds for all of them: files are reached with the caller's fsuid, groups and no capability
// over files; every mount is made in a mount namespace of the sandbox's own, without propagation, nosuid
// and, but for devices, nodev; flags of mounts are only ever added; and no program runs before every
// privilege is gone.
var operations = [...]struct {
	kind plan.Kind
	rule func(*plan.Setup, *plan.Mount) bool
}{
	{plan.Tmpfs, sized},    // new and empty; seen by the sandbox alone; its memory is bounded by its size
	{plan.Dir, always},     // in a tmpfs of the sandbox's own: the interpreter refuses it in the host's trees
	{plan.File, always},    // the same; an empty regular file
	{plan.Symlink, always}, // the same; nothing is made or mounted through it, see below
	// The whole tree as the caller sees it: recursive, so nothing below a mount comes to light; of ordinary file systems
	// (direct.go).
	{plan.Bind, always},
	{plan.Overlay, never},    // what is read through it is read with the rights of who mounted it
	{plan.Protect, always},   // a place of the sandbox on itself, with more flags than before
	{plan.Remount, always},   // read-only is added, never taken away
	{plan.Mask, always},      // the host's /dev/null on top
	{plan.Proc, ownProc},     // of the new pid namespace, where the caller sees an unmasked one already (limits.go)
	{plan.Devpts, always},    // always a new instance: no terminal of the host's is in it
	{plan.Mqueue, ownMqueue}, // only with an IPC namespace of its own: no queue of the host's is in it
	{plan.Fuse, never},       // a file server of the caller's could hold a privileged process up
}

func always(*plan.Setup, *plan.Mount) bool { return true }
func never(*plan.Setup, *plan.Mount) bool  { return false }

func sized(_ *plan.Setup, m *plan.Mount) bool { return m.Size > 0 && m.Inodes > 0 }

func ownProc(_ *plan.Setup, m *plan.Mount) bool { return !m.Optional }

func ownMqueue(p *plan.Setup, _ *plan.Mount) bool { return p.Namespaces.IPC }

// fields are what the rest of a plan must be. Its ids are the caller's, whom nobody asks for them.
var fields = [...]struct {
	is   func(*plan.Setup) bool
	what string
}{
	{func(p *plan.Setup) bool { return !p.Namespaces.User }, "no user namespace: nothing is mapped, so no id can be forged"},
	{func(p *plan.Setup) bool { return !p.Namespaces.Time }, "no clock: setting its offset takes CAP_SYS_TIME"},
	{func(p *plan.Setup) bool { return !p.Loopback || p.Namespaces.Net }, "lo is brought up only in a network namespace of its own"},
	{func(p *plan.Setup) bool { return p.Hostname == "" || p.Namespaces.UTS }, "a host name is set only in a UTS namespace of its own"},
	{func(p *plan.Setup) bool { return !p.Namespaces.JoinNet }, "no network namespace of the caller's: the new one is empty and the sandbox's own"},
	{func(p *plan.Setup) bool { return len(p.Mounts) > 0 && p.Mounts[0].Kind == plan.Tmpfs }, "the root is new and empty"},
	{func(p *plan.Setup) bool { return !slices.ContainsFunc(p.Stdio[:], isOpened) }, "nothing is opened for the caller: a file remembers what whoever opened it was allowed to"},
	{func(p *plan.Setup) bool { return len(p.Mounts) <= maxMounts }, "bounded work: mounts count against a limit of the whole host's"},
}

func isOpened(kind plan.Stdio) bool { return kind == plan.Reopen || kind == plan.Null }

// maxMounts is far above any real sandbox's number; the kernel's limit is 100000 for each mount namespace.
const maxMounts = 4096

// permitted refuses what the table does not have. It looks at nothing but its argument.
// Operations are numbered from 0, fields from -1 downwards.
func permitted(p *plan.Setup) {
	for i := range fields {
		want(fields[i].is(p), wire.NotPermitted, int64(-1-i))
	}
	var links []string
	for i := range p.Mounts {
		m := &p.Mounts[i]
		want(may(p, m) && !throughLink(links, m.Target), wire.NotPermitted, int64(i))
		if m.Kind == plan.Symlink {
			links = append(links, m.Target)
		}
	}
}

func may(p *plan.Setup, m *plan.Mount) bool {
	for i := range operations {
		if operations[i].kind == m.Kind {
			return operations[i].rule(p, m)
		}
	}
	return false
}

// throughLink says whether target would be reached through a link of the plan's own: while the root is
// being built, an absolute link leads to the host.
func throughLink(links []string, target string) bool {
	return slices.ContainsFunc(links, func(l string) bool { return target == l || strings.HasPrefix(target, l+"/") })
}

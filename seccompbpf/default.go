package seccompbpf

// Toggles are the facts of a session that the default policy depends on. The zero value is the narrowest policy.
type Toggles struct {
	Debug        bool // ptrace and process_vm_readv inside, and switching address randomisation off for a tracee
	Namespaces   bool // namespaces and mounts in them, for sandboxes inside
	Containers   bool // Namespaces, and what else a container runtime needs; images need SUIDBits as well
	Multiarch    bool // 32-bit programs, under a policy of their own
	KVM          bool // creating virtual machines
	Notify       bool // path and address calls go to the gate's second engine
	NotifyDenied bool // refused calls worth recording go to the broker instead of failing at once
	SUIDBits     bool // set-user-id and set-group-id bits may be set (unpacking container images)
	Only         bool // files in memory, which no mount and no Landlock rule covers, do not exist
	OneID        bool // the user namespace knows no ids but UID and GID
	UID, GID     uint32
	// calls that make or change names, or open for writing, go to the broker, which alone writes in judged trees
	Writes bool
	// opens for reading go to the broker as well: it reads what the kernel shows nobody
	Reads bool
	// there are no namespaces: what reaches beyond the sandbox by a number, or by a name that no rule of Landlock is
	// about, does not pass
	InPlace bool
	// and signals reach whatever the user runs (Landlock before ABI 6)
	SignalsLeave bool
	// whoever calls sbx bwrap says what is shown, and which limits hold: devices of the host's may be there
	Bwrap bool
	// the limit on core dumps is the caller's own, and may be changed
	Cores bool
}

const (
	sIFMT, sIFBLK, sIFCHR = 0o170000, 0o060000, 0o020000
	suidBits, sgidBit     = 0o6000, 0o2000
	oCreatOrTmpfile       = 0o100 | 0o20000000 // O_CREAT | __O_TMPFILE, the same on all four architectures
	atEmptyPath           = 0x1000
	wOK                   = 2
	// O_ACCMODE, O_CREAT, O_TRUNC, __O_TMPFILE: the same on all four
	oWrites = 0o3 | 0o100 | 0o1000 | 0o20000000

	// cloneNew are CLONE_NEWNS, CGROUP, UTS, IPC, USER, PID and NET.
	cloneNew = 0x7e020000
	// cloneNewTime exists for unshare only: in clone these bits are the exit signal.
	cloneNewTime = 0x80
)

// Default is the policy of sbx: what is listed is allowed, what is refused by name is EPERM, everything else does not
// exist.
func Default(arch Arch, t Toggles) Policy {
	p := forArch(arch, t)
	if t.Multiarch {
		switch arch {
		case AMD64:
			p.Others = []Policy{forArch(I386, t)}
		case ARM64:
			p.Others = []Policy{forArch(ARM, t)}
		}
	}
	return p
}

func forArch(arch Arch, t Toggles) Policy {
	b := &builder{t: t, rules: make([]Rule, 0, 80)}
	b.inPlace()
	b.modeBits()
	b.devices()
	b.ioctls()
	b.leases()
	b.packets(arch)
	b.sockets()
	b.processes()
	b.cores()
	b.ids(arch)
	b.namespaces()
	b.containers()
	if t.Only {
		b.add(Errno(EPERM), "only named programs can be executed, and a file in memory has no name", nil, "memfd_create")
	}
	if t.Writes {
		b.writes()
	}
	if t.Reads {
		b.add(Notify, "the kernel may not show what is opened", nil, "open", "openat")
	}
	if t.Notify {
		b.openStat()
		b.set(Notify, "@notify")
	}
	for _, s := range allowedSets {
		b.set(Allow, s)
	}
	if t.Debug {
		b.debug()
	}
	b.refused()
	return Policy{Arch: arch, Default: Errno(ENOSYS), Rules: b.rules}
}

// builder collects rules; where two could match, the one added first decides.
type builder struct {
	t     Toggles
	rules []Rule
}

func (b *builder) add(a Action, why string, conds []Cond, names ...string) {
	b.rules = append(b.rules, Rule{Names: names, Conds: conds, Action: a, Why: why})
}

func (b *builder) set(a Action, name string) {
	names, why := set(name)
	b.rules = append(b.rules, Rule{Names: names, Action: a, Why: name + ": " + why})
}

// refused must come last: what a toggle or an argument test let through has been decided before.
func (b *builder) refused() {
	if b.t.NotifyDenied {
		b.set(Notify, "@notify-denied")
	}
	for _, s := range []string{"@mount", "@kernel", "@handles", "@keyring", "@observe", "@clock-set", "@namespace",
		"@x86-legacy", "@debug"} {
		b.set(Errno(EPERM), s)
	}
	for _, s := range []string{"@io_uring", "@late", "@obsolete"} {
		b.set(Errno(ENOSYS), s)
	}
}

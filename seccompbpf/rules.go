package seccompbpf

import "slices"

// modeBits keeps set-user-id and set-group-id files out of writable host directories, where they would carry the
// user's rights (CVE-2019-3843). mkdir is not here: the kernel drops these bits from its mode argument. The test takes
// openat out of the kernel's allow cache: measured on 6.18, 25 to 35 ns of its 600, 1 to 3 % of a
// getppid-stat-openat-close round (BenchmarkKernelCost). Without it a one-line open makes what chmod may not. With the
// gate's second engine openat2 is notified, and the broker must apply the same test to the mode it reads.
func (b *builder) modeBits() {
	if b.t.SUIDBits {
		if !b.t.Notify {
			b.add(Allow, "mode bits are free, so its hidden mode argument does no harm", nil, "openat2")
		}
		return
	}
	bits := func(arg uint8) Cond { return Cond{Arg: arg, Op: AnyBits, Mask: suidBits} }
	creates := func(arg uint8) Cond { return Cond{Arg: arg, Op: AnyBits, Mask: oCreatOrTmpfile} }
	const why = "a file with a set-user-id or set-group-id bit would carry the user's rights on the host"
	if b.t.Writes { // of a directory in a judged tree it only passes the group on, as core.sharedRepository wants it
		group := func(arg uint8) []Cond { return []Cond{{Arg: arg, Op: MaskedEq, Mask: suidBits, Value: sgidBit}} }
		b.add(Notify, "the broker sets the set-group-id bit of directories alone", group(1), "chmod", "fchmod")
		b.add(Notify, "the broker sets the set-group-id bit of directories alone", group(2), "fchmodat", "fchmodat2")
	}
	b.add(Errno(EPERM), why, []Cond{bits(1)}, "chmod", "fchmod", "creat", "mknod")
	b.add(Errno(EPERM), why, []Cond{bits(2)}, "fchmodat", "fchmodat2", "mknodat")
	b.add(Errno(EPERM), why, []Cond{bits(3), creates(2)}, "openat")
	b.add(Errno(EPERM), why, []Cond{bits(2), creates(1)}, "open")
	if !b.t.Notify {
		b.add(Errno(ENOSYS), "its mode is in memory, out of sight of a filter; programs fall back to openat", nil, "openat2")
	}
}

// leases refuses leases and, of Linux 6.19, delegations: on what is shown read-only, too, they hold up whoever opens it
// outside (fs.lease-break-time), and nothing says which file a call is about. EINVAL is the kernel's word where
// fs.leases-enable is 0. The test takes fcntl out of the kernel's allow cache, some 30 ns.
func (b *builder) leases() {
	const setLease, setDelegation = 1024, 1040
	if !b.t.Bwrap {
		b.add(Errno(EINVAL), "a lease holds up whoever opens the file outside",
			[]Cond{{Arg: 1, Op: In, List: []uint64{setLease, setDelegation}}}, "fcntl", "fcntl64")
	}
}

// packets refuses O_DIRECT for what is open already. A pipe that the caller handed in is still the caller's when the
// program has ended. What others write into it then would be packets: a shell, which reads byte by byte, gets one byte
// of each, and the kernel drops the rest. Of such a file their writes would fail. EINVAL is the kernel's word where a
// file cannot do it. Who wants it opens the file so, or makes the pipe so.
func (b *builder) packets(arch Arch) {
	const setFlags = 4
	direct := uint64(0o40000)
	if arch == ARM64 || arch == ARM {
		direct = 0o200000
	}
	if !b.t.Bwrap {
		b.add(Errno(EINVAL), "packets in a pipe of the caller's lose what others write into it later",
			[]Cond{{Arg: 1, Op: Eq, Value: setFlags}, {Arg: 2, Op: AnyBits, Mask: direct}}, "fcntl", "fcntl64")
	}
}

// devices refuses block and character nodes; 0:0 is an overlay whiteout and harmless.
func (b *builder) devices() {
	const why = "a device node is a door into the kernel"
	for arg, name := range []string{"mknod", "mknodat"} {
		mode := uint8(arg + 1)
		b.add(Errno(EPERM), why, []Cond{{Arg: mode, Op: MaskedEq, Mask: sIFMT, Value: sIFBLK}}, name)
		b.add(Errno(EPERM), why, []Cond{{Arg: mode, Op: MaskedEq, Mask: sIFMT, Value: sIFCHR}, {Arg: mode + 1, Op: Ne}}, name)
	}
}

// openStat lets C libraries' fstat pass, which is every fifth call that would be notified. A name beside the flag is
// walked by the kernel alone, which finds what is mounted and nothing else; nobody is asked about it.
func (b *builder) openStat() {
	const why = "fstat of the C libraries: its object is open already"
	open := Cond{Arg: 0, Op: MaskedEq, Mask: 1 << 31, Value: 0}
	b.add(Allow, why, []Cond{open, {Arg: 3, Op: AnyBits, Mask: atEmptyPath}}, "newfstatat", "fstatat64")
	b.add(Allow, why, []Cond{open, {Arg: 2, Op: AnyBits, Mask: atEmptyPath}}, "statx")
}

// writes has the broker carry out what changes a judged tree, which the kernel shows read-only. What cannot change one
// by its arguments passes: opening for reading above all. openat2 does not exist then, see modeBits.
func (b *builder) writes() {
	const why = "opens for writing, or asks whether that is possible, perhaps in a judged tree"
	flags := func(arg uint8, mask uint64) []Cond { return []Cond{{Arg: arg, Op: AnyBits, Mask: mask}} }
	b.add(Notify, why, flags(1, oWrites), "open")
	b.add(Notify, why, flags(2, oWrites), "openat")
	b.add(Notify, why, flags(1, wOK), "access")
	b.add(Notify, why, flags(2, wOK), "faccessat", "faccessat2")
	b.set(Notify, "@writes")
}

// ioctls lets through what is understood. What is left over does not exist, as for a file without it: every object in a
// sandbox is of a kind that is listed. Where devices of the host may be shown, what no file system answers passes.
func (b *builder) ioctls() {
	deny := func(why string, list []uint64) {
		b.add(Errno(EPERM), why, []Cond{{Arg: 1, Op: In, List: list}}, "ioctl")
	}
	b.add(Allow, "reads, clones and maps files", []Cond{{Arg: 1, Op: In, List: ioctlFiles[:]}}, "ioctl")
	b.add(Errno(EPERM), "changes a file system below its permissions, or makes names in it (FS_IOC_*, btrfs, XFS)",
		[]Cond{{Arg: 1, Op: In, Mask: ioctlType, List: ioctlFileSystems[:]}}, "ioctl")
	deny("the same, and block devices (OCFS2, BLK*)", ioctlStorage[:])
	deny("types into, redirects or reconfigures a terminal (TIOCSTI, TIOCLINUX, KD*, VT_*)", ioctlTerminal[:])
	if !b.t.Namespaces && !b.t.Containers {
		deny("changes interfaces, routes, bridges or tunnels (SIOCS*)", ioctlNetwork[:])
	}
	known := ioctlKnown[:]
	if b.t.KVM {
		known = append(slices.Clone(known), ioctlKVM)
	} else {
		deny("creates a virtual machine", []uint64{kvmCreateVM})
	}
	if !b.t.Bwrap {
		b.add(Errno(ENOTTY), "nothing in a sandbox answers it", []Cond{{Arg: 1, Op: NotIn, Mask: ioctlType, List: known}},
			"ioctl")
	}
}

const (
	afUnix, afInet, afInet6, afNetlink    = 1, 2, 10, 16
	sockStream, sockDgram, sockRaw        = 1, 2, 3
	sockSeqpacket, sockPacket             = 5, 10
	sockTypeMask                          = 0xf // the rest of the argument are flags
	unspecified                           = 0
	unixOfUnix                            = 1
	netlinkRoute                          = 0
	ipICMP, ipTCP, ipUDP, ipICMPv6, ipRaw = 1, 6, 17, 58, 255
)

// sockets names the sockets that may exist, by family, type and protocol. What is not here does not exist, as in a
// kernel without it: other families (vsock, packet, alg, tipc, ...) reach past the network namespace or deep into the
// kernel; other transports (mptcp, udplite, sctp, dccp, l2tp, smc) are a large surface that nobody asked for, and the
// rules of a network know TCP, UDP and ping only; netlink beyond routes is audit, uevents, netfilter, crypto, diag. The
// errno is the one that programs expect.
func (b *builder) sockets() {
	family := func(f ...uint64) Cond { return Cond{Arg: 0, Op: In, List: f} }
	typ := func(v uint64) Cond { return Cond{Arg: 1, Op: MaskedEq, Mask: sockTypeMask, Value: v} }
	allow := func(why string, families, types, protocols []uint64, names ...string) {
		for _, t := range types {
			b.add(Allow, why, []Cond{family(families...), typ(t), {Arg: 2, Op: In, List: protocols}}, names...)
		}
	}
	inet := []uint64{afInet, afInet6}
	allow("unix sockets", []uint64{afUnix}, []uint64{sockStream, sockDgram, sockRaw, sockSeqpacket}, []uint64{unspecified,
		unixOfUnix}, "socket", "socketpair")
	allow("TCP", inet, []uint64{sockStream}, []uint64{unspecified, ipTCP}, "socket")
	allow("UDP and ping", inet, []uint64{sockDgram}, []uint64{unspecified, ipUDP, ipICMP, ipICMPv6}, "socket")
	allow("routes", []uint64{afNetlink}, []uint64{sockDgram, sockRaw}, []uint64{netlinkRoute}, "socket")
	if b.t.Containers {
		allow("ping and iptables in networks of a container's own", inet, []uint64{sockRaw}, []uint64{ipICMP, ipICMPv6,
			ipRaw}, "socket")
	}
	b.add(Errno(EAFNOSUPPORT), "other families", []Cond{{Arg: 0, Op: NotIn, List: []uint64{afUnix, afInet, afInet6,
		afNetlink}}}, "socket")
	b.add(Errno(EAFNOSUPPORT), "only unix sockets come in pairs", []Cond{{Arg: 0, Op: Ne, Value: afUnix}}, "socketpair")
	for _, v := range []uint64{sockRaw, sockPacket} {
		b.add(Errno(EPERM), "raw packets", []Cond{family(inet...), typ(v)}, "socket")
	}
	b.add(Errno(EPROTONOSUPPORT), "other types and protocols", nil, "socket", "socketpair")
	b.socketOptions()
	// i386 binaries of old C libraries reach these calls only through here, with the arguments in memory.
	b.add(Errno(EPERM), "SYS_SOCKET, SYS_SOCKETPAIR and SYS_SETSOCKOPT hide what is judged in memory",
		[]Cond{family(1, 8, 14)}, "socketcall")
	if b.t.Notify {
		b.add(Notify, "SYS_BIND and SYS_CONNECT", []Cond{family(2, 3)}, "socketcall")
	}
	b.add(Allow, "the rest works on sockets that exist", nil, "socketcall")
}

// socketOptions refuses what makes another kind of socket of an allowed one.
func (b *builder) socketOptions() {
	refuse := func(errno uint16, why string, level, option uint64) {
		low := func(arg uint8, v uint64) Cond { return Cond{Arg: arg, Op: MaskedEq, Mask: 0xffffffff, Value: v} }
		b.add(Errno(errno), why, []Cond{low(1, level), low(2, option)}, "setsockopt")
	}
	// The rules of the namespace refuse what such a socket is for (network/known.go); this refuses it where it begins.
	const foreign = "sockets with an address of somebody else's"
	refuse(EPERM, foreign, 0, 15)  // IP_FREEBIND
	refuse(EPERM, foreign, 41, 78) // IPV6_FREEBIND
	// Here the kernel itself reads a protocol of more than TCP or UDP. Programs do without where it has none.
	const inside = "protocols of the kernel within TCP and UDP: TLS, ESP, SMC, L2TP"
	refuse(ENOPROTOOPT, inside, ipTCP, 31)  // TCP_ULP
	refuse(ENOPROTOOPT, inside, ipUDP, 100) // UDP_ENCAP
}

// debug lets processes inside be traced, and their memory be read and written by the same check of the kernel's
// (PTRACE_MODE_ATTACH_REALCREDS, process_vm_readv(2)). A number that no process can have stays refused: whoever sweeps
// through all calls without arguments meets the filter.
func (b *builder) debug() {
	b.set(Allow, "@debug")
	b.add(Allow, "strace and debuggers read memory at once", []Cond{{Arg: 0, Op: MaskedEq, Mask: 1 << 31},
		{Arg: 0, Op: NotIn, List: []uint64{0}}}, "process_vm_readv", "process_vm_writev")
}

func (b *builder) processes() {
	values := []uint64{0, 0xffffffff, 8, 0x20000, 0x20008} // PER_LINUX, query, PER_LINUX32, UNAME26 and both
	if b.t.Debug {
		values = append(values, 0x0040000) // ADDR_NO_RANDOMIZE, which gdb sets for what it starts
	}
	b.add(Errno(EPERM), "READ_IMPLIES_EXEC and kin weaken what runs next", []Cond{{Arg: 0, Op: NotIn, List: values}},
		"personality")
	b.add(Errno(EPERM), "PR_SET_MM moves the places that /proc reports a program by",
		[]Cond{{Arg: 0, Op: Eq, Value: 35}}, "prctl")
	if !b.t.Bwrap { // what its caller's words show may be everything
		b.add(Errno(MarkErrno), "sbx asks whether it is in a session: no variable says so that it could believe",
			[]Cond{{Arg: 0, Op: Eq, Value: MarkOption}}, "prctl")
	}
	if !b.t.Containers {
		// The securebits lock PR_SET_KEEPCAPS, whose failure ends ping and other programs that drop capabilities. There is
		// none to keep or to drop.
		b.add(Errno(0), "PR_SET_KEEPCAPS keeps nothing where there is nothing", []Cond{{Arg: 0, Op: Eq, Value: 8}}, "prctl")
	}
}

// cores keeps the limit on core dumps at the one byte that sbx sets. Only that value keeps the kernel from starting a
// handler (core_pattern): 0, which is for files, does not (core(5)). ssh-agent and others set it to 0 themselves and
// may end where that fails, so nothing is done and they are told that it was. Who asks for the old value with it cannot
// be told.
func (b *builder) cores() {
	if b.t.Cores {
		return
	}
	const why, rlimitCore = "the limit on core dumps stays at 1, which keeps them from a handler outside", 4
	b.add(Errno(0), why, []Cond{{Arg: 0, Op: Eq, Value: rlimitCore}}, "setrlimit")
	set := []Cond{{Arg: 1, Op: Eq, Value: rlimitCore}, {Arg: 2, Op: Ne, Wide: true}}
	b.add(Errno(EPERM), why, append(set, Cond{Arg: 3, Op: Ne, Wide: true}), "prlimit64")
	b.add(Errno(0), why, set, "prlimit64")
}

// ids refuses the ids that the user namespace does not know as the host refuses them to an ordinary user. The kernel's
// own word for them is EINVAL, which programs take for a mistake of theirs: fakeroot passes over EPERM only.
func (b *builder) ids(arch Arch) {
	if !b.t.OneID {
		return
	}
	wide := "" // on 32-bit architectures the names without it take ids of 16 bits, and only old C libraries use them
	if arch == I386 || arch == ARM {
		wide = "32"
	}
	refuse := func(id uint32, args []uint8, names ...string) {
		for _, arg := range args { // Ne and not NotIn: Usual puts the ids in where they are compared
			foreign := []Cond{{Arg: arg, Op: Ne, Value: 1<<32 - 1}, {Arg: arg, Op: Ne, Value: uint64(id)}}
			b.add(Errno(EPERM), "an id that is not the user's own", foreign, names...)
		}
	}
	owners := []string{"chown" + wide, "fchown" + wide, "lchown" + wide}
	refuse(b.t.UID, []uint8{1}, owners...)
	refuse(b.t.GID, []uint8{2}, owners...)
	refuse(b.t.UID, []uint8{2}, "fchownat")
	refuse(b.t.GID, []uint8{3}, "fchownat")
	for n, set := range []string{"set", "setre", "setres"} {
		args := []uint8{0, 1, 2}[:n+1]
		refuse(b.t.UID, args, set+"uid"+wide)
		refuse(b.t.GID, args, set+"gid"+wide)
	}
}

func (b *builder) namespaces() {
	if b.t.Namespaces || b.t.Containers {
		b.add(Allow, "sandboxes and containers inside make namespaces", nil, "clone3")
		b.set(Allow, "@containers")
		return
	}
	const why = "a new user namespace hands out capabilities, and with them the kernel's least tested parts"
	denied := Errno(EPERM)
	if b.t.NotifyDenied {
		denied = Notify
	}
	b.add(denied, why, []Cond{{Arg: 0, Op: AnyBits, Mask: cloneNew}}, "clone")
	b.add(denied, why, []Cond{{Arg: 0, Op: AnyBits, Mask: cloneNew | cloneNewTime}}, "unshare")
	b.add(Errno(ENOSYS), "its flags are in memory; the C libraries fall back to clone on this errno only", nil, "clone3")
}

func (b *builder) containers() {
	if !b.t.Containers {
		return
	}
	// Runtimes want an empty keyring for each container and do without where the kernel has none. SETPERM would reach the
	// user's own keys.
	b.add(Errno(ENOSYS), "keyrings belong to the user and are counted on the host",
		[]Cond{{Arg: 0, Op: In, List: []uint64{1, 5, 6}}}, "keyctl")
}

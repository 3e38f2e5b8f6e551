//go:build linux

package main

// act is one forbidden thing and the name checks call it by.
type act struct {
	name string
	fn   func([]string) outcome
}

func findAct(name string) func([]string) outcome {
	for _, a := range acts() {
		if a.name == name {
			return a.fn
		}
	}
	return nil
}

// acts is a function so that nothing is built before main runs.
func acts() []act {
	return []act{
		// reading
		{"read", readPaths}, {"linkread", linkRead}, {"linkchain", linkChain}, {"procalias", procAlias},
		{"procwalk", procWalk},
		{"dirfd", dirFD}, {"dirfdup", dirFDUp}, {"openat2", openAt2}, {"opath", oPath}, {"opentree", openTree},
		{"handle", handle},
		{"innerfilter", innerFilter}, {"execread", execRead}, {"execout", execOut}, {"waitread", waitRead},
		{"reopen", reopen},
		// looking
		{"names", names}, {"meta", meta}, {"exists", exists}, {"findsbx", findSbx}, {"mountinfo", mountInfo},
		{"devs", devices}, {"kinfo", kernelInfo}, {"inotify", inotify},
		// races
		{"racethread", raceThread}, {"raceswap", raceSwap}, {"pageend", pageEnd}, {"eintr", eintr},
		// writing
		{"append", appendTo}, {"linkwrite", linkWrite}, {"hardlink", hardLink}, {"modify", modify}, {"moveaway", moveAway},
		{"ancestor", ancestor},
		{"plant", plant}, {"suidbits", suidBits}, {"secxattr", secXattr}, {"mknods", mknods}, {"flock", flock},
		{"openwrite", openWrite}, {"cgroupfs", cgroupFS},
		// processes
		{"fds", fds}, {"environs", environs}, {"env", environment}, {"pids", pids}, {"selfproc", selfProc},
		{"procmem", procMem}, {"ptraceother", ptraceOther},
		{"ptracechild", ptraceChild}, {"ptracerewrite", ptraceRewrite}, {"victim", victim}, {"signals", signals},
		{"foreign", foreign}, {"daemon", daemon}, {"linger", linger}, {"zombies", zombies},
		// privileges and namespaces
		{"status", status}, {"userns", userNS}, {"clone3", clone3}, {"nsflags", nsFlags}, {"setns", setNS},
		{"chroot", chroot}, {"mounts", mounts}, {"newmounts", newMounts},
		{"cgroupmount", cgroupMount}, {"ids", ids}, {"idmaps", idMaps}, {"suid", suid}, {"nestedmounts", nestedMounts},
		{"nestedsweep", nestedSweep},
		// kernel
		{"sweep", sweep}, {"bpf", bpf}, {"keyring", keyring}, {"userfault", userFault}, {"kernlog", kernLog},
		{"pagecache", pageCache}, {"ioctls", ioctls},
		{"clocks", clocks}, {"sched", sched}, {"personality", personality}, {"iouring", ioURing}, {"int80", actInt80},
		{"x32", x32},
		// terminal
		{"tiocsti", tiocsti}, {"ttyioctls", ttyIoctls}, {"ttys", ttys},
		// network
		{"egress", egress}, {"rawsock", rawSock}, {"udp", udp}, {"abstract", abstractSock}, {"connect", connectUnix},
		{"vsock", vsock}, {"protocols", protocols}, {"netlink", netlink}, {"listen", listen}, {"bindsock", bindSock},
		{"control", control},
		// services, programs
		{"agentops", agentOps}, {"nixops", nixOps}, {"execother", execOther}, {"mapexec", mapExec},
		// resources
		{"corelimit", coreLimit}, {"forks", forks}, {"memory", memory}, {"fill", fill},
		{"inodes", inodes}, {"cpu", cpu}, {"bigargv", bigArgv}, {"maze", maze}, {"sysvshm", sysvShm},
	}
}

func arg(args []string, i int) string {
	if i < len(args) {
		return args[i]
	}
	return ""
}

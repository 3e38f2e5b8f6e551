package seccompbpf

// inPlace refuses what a namespace would bound. Landlock knows files and signals; it does not know sockets with a name
// in the file system, nor calls about a process that take no signal.
func (b *builder) inPlace() {
	if !b.t.InPlace {
		return
	}
	b.noSockets()
	b.ownProcesses()
	names, _ := set("@ipc")
	b.add(Errno(ENOSYS), "queues, shared memory and semaphores are those of all that the user runs", nil, names...)
}

// noSockets leaves pairs. A pair of datagrams could still be sent to any name.
func (b *builder) noSockets() {
	for _, t := range []uint64{sockStream, sockSeqpacket} {
		b.add(Allow, "a pair is connected, and stays so", []Cond{{Arg: 0, Op: Eq, Value: afUnix},
			{Arg: 1, Op: MaskedEq, Mask: sockTypeMask, Value: t}, {Arg: 2, Op: In, List: []uint64{unspecified, unixOfUnix}}},
			"socketpair")
	}
	const why = "the network and every named socket are the host's"
	b.add(Errno(EACCES), why, nil, "socket", "socketpair", "connect", "bind", "socketcall")
	b.add(Errno(EACCES), why, []Cond{{Arg: 4, Op: Ne, Wide: true}}, "sendto")
}

// ownProcesses lets calls about a process be about the caller alone.
func (b *builder) ownProcesses() {
	const why = "the process could be any of the user's"
	other := func(arg uint8) []Cond { return []Cond{{Arg: arg, Op: Ne}} }
	b.add(Errno(EPERM), why, other(0), "prlimit64", "sched_setaffinity", "sched_setattr", "sched_setparam",
		"sched_setscheduler")
	b.add(Errno(EPERM), why, other(0), "setpriority") // PRIO_PROCESS
	b.add(Errno(EPERM), why, other(1), "setpriority")
	b.add(Errno(EPERM), why, []Cond{{Arg: 0, Op: Ne, Value: 1}}, "ioprio_set") // IOPRIO_WHO_PROCESS
	b.add(Errno(EPERM), why, other(1), "ioprio_set")
	if b.t.SignalsLeave {
		b.add(Errno(EPERM), "all processes are all of the user's", []Cond{{Arg: 0, Op: Eq, Value: 1<<32 - 1}}, "kill")
	}
}

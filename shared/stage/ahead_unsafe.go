package stage

import (
	"bytes"
	"fmt"
	"slices"
	"sync/atomic"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// aheadArena is an arena whose memory is the broker's, and whose addresses are those of the mapped file.
func aheadArena() *arena {
	return &arena{data: make([]byte, aheadData), base: aheadAt + unsafe.Offsetof(aheadFile{}.data)}
}

// holds says whether t is what the file holds.
func (m *aheadFile) holds(t *tape) bool {
	return uint64(len(t.ops)) == m.nops && t.byBroker == m.byBroker && uint64(t.arena.used) == m.used && slices.Equal(t.ops, m.ops[:m.nops]) && bytes.Equal(t.arena.data[:m.used], m.data[:m.used])
}

// encodeAhead makes the file of t; nil if the id stands in too many places.
func encodeAhead(t *tape, ids []uint32, misses uint64, alone bool) []byte {
	m := &aheadFile{magic: aheadMagic, nops: uint64(len(t.ops)), used: uint64(t.arena.used), nids: uint64(len(ids)), misses: misses, byBroker: t.byBroker}
	if len(ids) > len(m.ids) {
		return nil
	}
	if alone {
		m.alone = 1
	}
	copy(m.ids[:], ids)
	copy(m.ops[:], t.ops)
	copy(m.data[:], t.arena.data[:t.arena.used])
	return unsafe.Slice((*byte)(unsafe.Pointer(m)), unsafe.Sizeof(*m))
}

// name is the file's.
func (x *aheadEntry) name() string { return fmt.Sprintf("%016x", x.key) }

// folder is the session's, which process 1 makes.
func (x *aheadEntry) folder() string {
	return string(x.path[:x.dir]) + "/sessions/" + string(x.id[:idLength])
}

// carryAhead has process 1 carry out the tape in the file, instead of waiting for the plan's.
//
//go:noinline
//go:nosplit
//go:norace
func carryAhead(p *program) {
	m := p.ahead
	n, s := m.nops, m.byBroker
	if n > aheadOps || s.from > s.to || s.to > n {
		exit(1)
	}
	if !runTape(m.ops[:s.from], &p.c.regs, &p.c.setup) {
		exit(1)
	}
	awaitBroker(p)
	if !runTape(m.ops[s.to:n], &p.c.regs, &p.c.setup) {
		exit(1)
	}
	p.sock = fdSock // the tape has moved it
}

// awaitBroker waits until the broker has done its part. It ends process 1 where it could not, or is gone.
//
//go:noinline
//go:nosplit
//go:norace
func awaitBroker(p *program) {
	c := p.c
	c.timeout = unix.Timespec{Nsec: 20_000_000}
	for {
		switch atomic.LoadInt32(&p.ready) {
		case 1:
			return
		case -1:
			exit(1)
		}
		syscall.RawSyscall6(syscall.SYS_FUTEX, uintptr(unsafe.Pointer(&p.ready)), 0, 0, uintptr(unsafe.Pointer(&c.timeout)), 0, 0) // FUTEX_WAIT
		n, _, e := syscall.RawSyscall6(syscall.SYS_RECVFROM, fdSock, uintptr(unsafe.Pointer(&c.in)), unsafe.Sizeof(c.in), unix.MSG_PEEK|unix.MSG_DONTWAIT, 0, 0)
		if e == 0 && n == 0 {
			exit(1)
		}
	}
}

// provide does the broker's part for process 1, which is pid here: its identity maps and the session's folder. It runs in the broker, before the
// Go runtime.
//
//go:noinline
//go:nosplit
//go:norace
func provide(p *program, pid uintptr) {
	if p.ahead == nil || p.ahead.byBroker.from > p.ahead.byBroker.to || p.ahead.byBroker.to > aheadOps {
		return
	}
	ops := p.ahead.ops[p.ahead.byBroker.from:p.ahead.byBroker.to]
	c, dir := p.c, &p.dir
	end := len(dir) - 1
	for ; pid != 0; pid /= 10 {
		end--
		dir[end] = byte('0' + pid%10)
	}
	for i, proc := 5, "/proc/"; i >= 0; i-- {
		end--
		dir[end] = proc[i]
	}
	mask, _, _ := syscall.RawSyscall(syscall.SYS_UMASK, 0, 0, 0)
	fd, _, e := syscall.RawSyscall6(syscall.SYS_OPENAT, cwd, uintptr(unsafe.Pointer(&dir[end])), unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0, 0, 0)
	ready := int32(-1)
	if e == 0 && !brokers(ops) {
		e = syscall.EPERM
	}
	c.pregs[regD] = fd
	if e != 0 {
		p.made.errno = int64(e)
	} else if runTape(ops, &c.pregs, &p.made) {
		ready = 1
	}
	syscall.RawSyscall(syscall.SYS_CLOSE, fd, 0, 0)
	syscall.RawSyscall(syscall.SYS_UMASK, mask, 0, 0)
	atomic.StoreInt32(&p.ready, ready)
	syscall.RawSyscall6(syscall.SYS_FUTEX, uintptr(unsafe.Pointer(&p.ready)), 1, 1, 0, 0, 0) // FUTEX_WAKE
}

// brokers says whether all of ops may be the broker's: it makes and writes files and does nothing else, whatever is in the file.
//
//go:nosplit
//go:norace
func brokers(ops []op) bool {
	for i := range ops {
		switch o := &ops[i]; {
		case o.kind == opWant:
		case o.kind != opCall:
			return false
		case o.nr != syscall.SYS_OPENAT && o.nr != syscall.SYS_WRITE && o.nr != syscall.SYS_CLOSE && o.nr != syscall.SYS_MKDIRAT && o.nr != unix.SYS_RENAMEAT:
			return false
		}
	}
	return true
}

package stage

import (
	"fmt"
	"syscall"

	"golang.org/x/sys/unix"
)

// Bounds of what a child carries out that has one tape and ends.
const (
	oneOps  = 4 << 10
	oneData = 1 << 20
)

// one is what this process and such a child share.
type one struct {
	regs  registers
	fault fault
	ops   [oneOps]op
	data  [oneData]byte
}

func newOne() (*one, *tape, func(), error) {
	m, unmap, err := mapped[one](unix.MAP_SHARED)
	if err != nil {
		return nil, nil, nil, fmt.Errorf("mapping memory for a child: %w", err)
	}
	m.fault.index = -1
	return m, &tape{ops: m.ops[:0], fixed: true, arena: newArena(m.data[:])}, unmap, nil
}

// start clones the child.
func (m *one) start(flags uintptr, t *tape) (pid int, err error) {
	if t.full() {
		return 0, errPlanTooLarge
	}
	syscall.ForkLock.Lock()
	p, errno := launchTape(flags, t.ops, m)
	syscall.ForkLock.Unlock()
	if errno != 0 {
		return 0, &Fault{Phase: "child", Index: -1, Step: "cloning", Errno: syscall.Errno(errno)}
	}
	return int(p), nil
}

// launchTape clones the child. In the child it never returns.
//
//go:noinline
//go:nosplit
//go:norace
func launchTape(flags uintptr, ops []op, m *one) (pid, errno uintptr) {
	if pid, errno = fork(flags); errno != 0 || pid != 0 {
		return pid, errno
	}
	runTape(ops, &m.regs, &m.fault)
	exit(0)
	return 0, 0
}

//go:build linux

package netns

import (
	"fmt"
	"syscall"

	"golang.org/x/sys/unix"

	"sbx.example/sbx/broker/internal/steps"
	"sbx.example/sbx/shared/stage"
	"sbx.example/sbx/shared/tape"
)

// Bounds of what a child carries out that has one tape and ends.
const (
	oneOps  = 4 << 10
	oneData = 1 << 20
)

// one is what this process and such a child share.
type one struct {
	regs  tape.Registers
	fault tape.Stop
	ops   [oneOps]tape.Op
	data  [oneData]byte
}

func newOne() (*one, *tape.Tape, func(), error) {
	m, err := tape.Map[one](unix.MAP_SHARED)
	if err != nil {
		return nil, nil, nil, fmt.Errorf("mapping memory for a child: %w", err)
	}
	m.fault.Index = -1
	return m, &tape.Tape{Ops: m.ops[:0], Fixed: true, Arena: tape.NewArena(m.data[:])}, func() { steps.Unmap(m) }, nil
}

// start clones the child.
func (m *one) start(flags uintptr, t *tape.Tape) (pid int, err error) {
	if t.Full() {
		return 0, stage.ErrPlanTooLarge
	}
	syscall.ForkLock.Lock()
	p, errno := launchTape(flags, t.Ops, m)
	syscall.ForkLock.Unlock()
	if errno != 0 {
		return 0, &steps.Fault{Step: "cloning", Errno: syscall.Errno(errno)}
	}
	return int(p), nil
}

// launchTape clones the child. In the child it never returns.
//
//go:noinline
//go:nosplit
//go:norace
func launchTape(flags uintptr, ops []tape.Op, m *one) (pid, errno uintptr) {
	if pid, errno = tape.Fork(flags); errno != 0 || pid != 0 {
		return pid, errno
	}
	tape.Run(ops, &m.regs, &m.fault)
	tape.Exit(0)
	return 0, 0
}

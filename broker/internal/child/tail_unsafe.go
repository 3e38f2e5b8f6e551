//go:build linux

package child

import (
	"errors"
	"fmt"
	"slices"
	"unsafe"

	"golang.org/x/sys/unix"

	"sbx.example/sbx/broker/plan"
	"sbx.example/sbx/shared/stage"
	"sbx.example/sbx/shared/tape"
)

// Tail is what process 1 does after it has given up its privileges, in a file to be sent to sbx-helper, which does not
// look into it.
type Tail struct {
	FD int // the caller's to close

	rest, start *tape.Tape
	block       *Block
}

// NewTail makes the tail of a plan without a user namespace.
func NewTail(p *plan.Plan) (*Tail, error) {
	if p.Namespaces.User || slices.ContainsFunc(p.Fds, func(r plan.FdRole) bool {
		return r != plan.FdPty &&
			r != plan.FdSeccomp
	}) {
		return nil, errors.New("the plan is not for this way of carrying it out")
	}
	b, err := newBlock()
	if err != nil {
		return nil, err
	}
	x := &Tail{block: b}
	x.rest, x.start = b.tapes()
	head := stage.Tail{}
	x.rest.Arena.Base = stage.TailAt + unsafe.Sizeof(head)
	c := newBuilder(x.rest, p)
	if p.Bwrap != nil {
		if err = c.within(); err != nil {
			return nil, err
		}
	}
	if c.finish(); p.Bwrap != nil {
		closeSingly(x.rest)
	}
	openPlainly(x.rest)
	compileStart(x.start, p)
	for i, m := range places(p) {
		head.Places[i] = x.start.Str(m.Target)
	}
	if x.rest.Full() || x.start.Full() {
		return nil, stage.ErrPlanTooLarge
	}
	data := b.data[:x.rest.Arena.Used]
	at := x.rest.Arena.Base + uintptr(len(data))
	head.Rest = unsafe.Slice((*tape.Op)(tape.Address(at)), len(x.rest.Ops)) // as process 1 will find it; here is nothing
	head.Start = unsafe.Slice((*tape.Op)(tape.Address(at+uintptr(len(x.rest.Ops))*unsafe.Sizeof(tape.Op{}))),
		len(x.start.Ops))
	if x.FD, err = unix.MemfdCreate("tail", unix.MFD_CLOEXEC); err != nil {
		return nil, fmt.Errorf("making a file for process 1: %w", err)
	}
	for _, b := range [...][]byte{memoryOf(unsafe.Slice(&head, 1)), data, memoryOf(x.rest.Ops), memoryOf(x.start.Ops)} {
		n, err := unix.Write(x.FD, b)
		if err == nil && n != len(b) {
			err = unix.EFBIG
		}
		if err != nil {
			unix.Close(x.FD)
			return nil, fmt.Errorf("writing a file for process 1: %w", err)
		}
	}
	return x, nil
}

func memoryOf[T any](list []T) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(list))), uintptr(len(list))*unsafe.Sizeof(list[0]))
}

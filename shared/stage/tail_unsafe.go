package stage

import (
	"errors"
	"fmt"
	"slices"
	"unsafe"

	"golang.org/x/sys/unix"

	"sbx/shared/plan"
)

// Tail is what process 1 does after it has given up its privileges, in a file to be sent to sbx-helper, which does not look into it.
type Tail struct {
	FD int // the caller's to close

	rest, start *tape
	block       *block
}

// NewTail makes the tail of a plan without a user namespace.
func NewTail(p *plan.Plan) (*Tail, error) {
	if p.Namespaces.User || slices.ContainsFunc(p.Fds, func(r plan.FdRole) bool { return r != plan.FdPty && r != plan.FdSeccomp }) {
		return nil, errors.New("the plan is not for this way of carrying it out")
	}
	b, err := newBlock()
	if err != nil {
		return nil, err
	}
	x := &Tail{block: b}
	x.rest, x.start = b.tapes()
	head := tail{}
	x.rest.arena.base = tailAt + unsafe.Sizeof(head)
	newBuilder(x.rest, p).finish()
	compileStart(x.start, p)
	for i, m := range places(p) {
		head.places[i] = x.start.str(string(m.Target))
	}
	if x.rest.full() || x.start.full() {
		return nil, errPlanTooLarge
	}
	data := b.data[:x.rest.arena.used]
	at := x.rest.arena.base + uintptr(len(data))
	head.rest = unsafe.Slice((*op)(address(at)), len(x.rest.ops)) // as process 1 will find it; here is nothing
	head.start = unsafe.Slice((*op)(address(at+uintptr(len(x.rest.ops))*unsafe.Sizeof(op{}))), len(x.start.ops))
	if x.FD, err = unix.MemfdCreate("tail", unix.MFD_CLOEXEC); err != nil {
		return nil, fmt.Errorf("making a file for process 1: %w", err)
	}
	for _, b := range [...][]byte{memoryOf(unsafe.Slice(&head, 1)), data, memoryOf(x.rest.ops), memoryOf(x.start.ops)} {
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

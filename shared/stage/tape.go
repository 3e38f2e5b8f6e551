package stage

// The tape's instructions. A call is a raw system call whose arguments may come from registers; an
// expect compares memory that an earlier call filled, and oneOf does with several values; a poke stores a register into such memory, for
// system calls that take a descriptor inside a structure; want compares a register.
const (
	opCall = iota
	opExpect
	opPoke
	opWant
	opOneOf
)

// atCwd is AT_FDCWD.
const atCwd = ^uintptr(99)

// anyErrno as okErrno lets a call fail in whatever way.
const anyErrno = 0xffff

// Registers of the tape. Register 0 means "the literal argument".
const (
	regNone = iota
	regRoot // the new root
	regA
	regB
	regC
	regD
	regTTY
	regListener
	regCount = 8
)

// op is one instruction. It is plain memory: the child reads nothing else.
type op struct {
	kind    uint8
	save    uint8 // register that takes the result
	okErrno uint16
	skip    uint8  // instructions to skip when the call failed with okErrno
	again   uint16 // repeat the call while it returns at least this much (getdents64)
	reg     [6]uint8
	nr      uintptr
	a       [6]uintptr
}

// Step says in words what an instruction does; it never leaves the parent.
type Step struct {
	Name   string // the system call, or what it is part of
	Object string // path or thing
}

// tape is a program under construction, in memory that is shared with the process that runs it.
type tape struct {
	ops   []op
	steps []stepAt
	fixed bool   // ops lie in memory of the interpreter's and cannot grow
	arena *arena // of everything that an argument points to

	stat uintptr // see statBuf
}

// stepAt is the step of the instructions from first on.
type stepAt struct {
	first int
	Step
}

// at names the instructions that follow.
func (t *tape) at(name, object string) {
	t.steps = append(t.steps, stepAt{len(t.ops), Step{name, object}})
}

func (t *tape) add(o op) *op {
	if t.fixed && len(t.ops) == cap(t.ops) { // whoever fills it asks at the end whether it is full
		return new(op)
	}
	t.ops = append(t.ops, o)
	return &t.ops[len(t.ops)-1]
}

func (t *tape) call(nr uintptr, args ...uintptr) *op {
	o := op{kind: opCall, nr: nr}
	copy(o.a[:], args)
	return t.add(o)
}

// from makes argument arg come from register r.
func (o *op) from(arg int, r uint8) *op { o.reg[arg] = r; return o }

// to stores the result in register r.
func (o *op) to(r uint8) *op { o.save = r; return o }

// may lets the call fail with errno.
func (o *op) may(errno uint16) *op { o.okErrno = errno; return o }

// else_ skips the next n instructions when the call failed in the way it may.
func (o *op) elseSkip(n uint8) *op { o.skip = n; return o }

// repeat makes the call again while it returns n or more.
func (o *op) repeat(n uint16) *op { o.again = n; return o }

// want fails the tape with errno unless register r holds v.
func (t *tape) want(r uint8, v uintptr, errno uintptr) {
	t.add(op{kind: opWant, reg: [6]uint8{r}, a: [6]uintptr{v, errno}})
}

// full says whether the tape does not fit its memory.
func (t *tape) full() bool { return t.arena.full || t.fixed && len(t.ops) == cap(t.ops) }

// statBuf is the address of one struct statx, which is read before the next is asked for.
func (t *tape) statBuf() uintptr {
	if t.stat == 0 {
		t.stat = t.buf(256)
	}
	return t.stat
}

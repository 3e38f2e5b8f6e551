//go:build linux

package tape

// The tape's instructions. A call is a raw system call whose arguments may come from registers; an expect compares
// memory that an earlier call filled, and oneOf does with several values; a poke stores a register into such memory,
// for system calls that take a descriptor inside a structure; want compares a register.
const (
	opCall = iota
	opExpect
	opPoke
	OpWant
	OpOneOf
)

// AtCwd is AT_FDCWD.
const AtCwd = ^uintptr(99)

// AnyErrno as okErrno lets a call fail in whatever way.
const AnyErrno = 0xffff

// Registers of the tape. Register 0 means "the literal argument".
const (
	RegNone = iota
	RegRoot // the new root
	RegA
	RegB
	RegC
	RegD
	RegTTY
	RegListener
	regCount = 8
)

// Op is one instruction. It is plain memory: the child reads nothing else.
type Op struct {
	Kind    uint8
	Save    uint8 // register that takes the result
	OkErrno uint16
	Skip    uint8  // instructions to skip when the call failed with okErrno
	Again   uint16 // repeat the call while it returns at least this much (getdents64)
	Reg     [6]uint8
	Nr      uintptr
	A       [6]uintptr
}

// Step says in words what an instruction does; it never leaves the parent.
type Step struct {
	Name   string // the system call, or what it is part of
	Object string // path or thing
}

// Tape is a program under construction, in memory that is shared with the process that runs it.
type Tape struct {
	Ops   []Op
	Steps []StepAt
	Fixed bool   // ops lie in memory of the interpreter's and cannot grow
	Arena *Arena // of everything that an argument points to

	stat uintptr // see statBuf
}

// StepAt is the step of the instructions from first on.
type StepAt struct {
	First int
	Step
}

// At names the instructions that follow.
func (t *Tape) At(name, object string) {
	t.Steps = append(t.Steps, StepAt{len(t.Ops), Step{name, object}})
}

func (t *Tape) Add(o Op) *Op {
	if t.Fixed && len(t.Ops) == cap(t.Ops) { // whoever fills it asks at the end whether it is full
		return new(Op)
	}
	t.Ops = append(t.Ops, o)
	return &t.Ops[len(t.Ops)-1]
}

func (t *Tape) Call(nr uintptr, args ...uintptr) *Op {
	o := Op{Kind: opCall, Nr: nr}
	copy(o.A[:], args)
	return t.Add(o)
}

// From makes argument arg come from register r.
func (o *Op) From(arg int, r uint8) *Op { o.Reg[arg] = r; return o }

// To stores the result in register r.
func (o *Op) To(r uint8) *Op { o.Save = r; return o }

// May lets the call fail with errno.
func (o *Op) May(errno uint16) *Op { o.OkErrno = errno; return o }

// ElseSkip skips the next n instructions when the call failed in the way it may.
func (o *Op) ElseSkip(n uint8) *Op { o.Skip = n; return o }

// Repeat makes the call again while it returns n or more.
func (o *Op) Repeat(n uint16) *Op { o.Again = n; return o }

// Want fails the tape with errno unless register r holds v.
func (t *Tape) Want(r uint8, v uintptr, errno uintptr) {
	t.Add(Op{Kind: OpWant, Reg: [6]uint8{r}, A: [6]uintptr{v, errno}})
}

// Full says whether the tape does not fit its memory.
func (t *Tape) Full() bool { return t.Arena.Full || t.Fixed && len(t.Ops) == cap(t.Ops) }

// StatBuf is the address of one struct statx, which is read before the next is asked for.
func (t *Tape) StatBuf() uintptr {
	if t.stat == 0 {
		t.stat = t.Buf(256)
	}
	return t.stat
}

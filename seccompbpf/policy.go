// Package seccompbpf turns system call rules, which are plain data, into classic BPF programs for seccomp(2). It must
// never load a program, make a system call or keep state: loading is the business of the privileged side, which
// contains no compiler. cli calls it for the planner, and notify for names and numbers; its tests hold the programs
// against an evaluator, a second compiler and the kernel.
package seccompbpf

import (
	"strconv"
)

// Arch is an AUDIT_ARCH_* value as it stands in seccomp_data.arch.
type Arch uint32

const (
	AMD64 Arch = 0xc000003e
	ARM64 Arch = 0xc00000b7
	I386  Arch = 0x40000003
	ARM   Arch = 0x40000028
)

func (a Arch) String() string {
	switch a {
	case AMD64:
		return "amd64"
	case ARM64:
		return "arm64"
	case I386:
		return "i386"
	case ARM:
		return "arm"
	}
	return "arch " + strconv.FormatUint(uint64(a), 16)
}

// Action is a raw SECCOMP_RET_* value with its data.
type Action uint32

const (
	KillProcess Action = 0x80000000
	Notify      Action = 0x7fc00000
	Log         Action = 0x7ffc0000
	Allow       Action = 0x7fff0000

	retErrno    Action = 0x00050000
	retDataMask Action = 0x0000ffff
)

// The errno values this policy answers with; they are the same on every Linux architecture sbx knows.
const (
	EPERM           = 1
	EACCES          = 13
	EINVAL          = 22
	ENOTTY          = 25
	ENOSYS          = 38
	ENOPROTOOPT     = 92
	EPROTONOSUPPORT = 93
	EAFNOSUPPORT    = 97
)

// A program asks by prctl(2) with MarkOption whether a session's filter holds it. MarkErrno is that filter's answer
// alone: no kernel knows the option (EINVAL), and no other filter has a reason for this errno.
const (
	MarkOption = 0x53627853 // "SbxS"
	MarkErrno  = 118        // ENOTNAM
)

// Errno is the action that makes the call fail with n.
func Errno(n uint16) Action { return retErrno | Action(n) }

// Op says how a condition compares its argument.
type Op uint8

const (
	Eq       Op = iota // arg == Value
	Ne                 // arg != Value
	MaskedEq           // arg & Mask == Value
	AnyBits            // arg & Mask != 0
	In                 // arg is one of List; with a Mask, arg & Mask is
	NotIn              // the opposite
)

// Cond is one test of one argument. It looks at the low 32 bits only, because that is all the kernel looks at for int
// and unsigned int arguments: a comparison of 64 bits is evaded by garbage above (flatpak CVE-2019-10063). Wide asks
// for both halves.
type Cond struct {
	Arg   uint8
	Op    Op
	Value uint64
	Mask  uint64
	List  []uint64
	Wide  bool
}

// Rule gives some system calls an action. Names that exist on another architecture only are passed over.
type Rule struct {
	Names  []string
	Conds  []Cond // all must hold; none means always
	Action Action
	Why    string
}

// Policy is a list of rules; for each call the first rule that names it and whose conditions all hold decides, and
// Default decides for the rest.
type Policy struct {
	Arch    Arch
	Default Action
	Rules   []Rule
	Others  []Policy // further architectures; any architecture without a policy kills the process
}

// Insn has the layout of struct sock_filter.
type Insn struct {
	Code   uint16
	Jt, Jf uint8
	K      uint32
}

// Data has the meaning of struct seccomp_data.
type Data struct {
	Nr   int32
	Arch uint32
	IP   uint64
	Args [6]uint64
}

// x32Bit marks numbers of the x32 ABI, which share AUDIT_ARCH_X86_64; no architecture has honest numbers from here on.
const x32Bit = 0x40000000

package seccompbpf

import (
	"errors"
	"fmt"
)

// The instructions of classic BPF that seccomp(2) accepts and this package emits.
const (
	opLoad = 0x20 // BPF_LD | BPF_W | BPF_ABS
	opAnd  = 0x54 // BPF_ALU | BPF_AND | BPF_K
	opJump = 0x05 // BPF_JMP | BPF_JA
	opJeq  = 0x15
	opJgt  = 0x25
	opJge  = 0x35
	opJset = 0x45
	opRet  = 0x06 // BPF_RET | BPF_K

	offNr    = 0
	offArch  = 4
	offArgs  = 16
	dataSize = 64

	maxInsns = 4096 // BPF_MAXINSNS
)

// Check makes sure that the kernel would take the program and that it ends: every jump goes forward to an instruction
// that exists, every load lies in seccomp_data, the last instruction returns. Programs with other instructions
// than this package emits are refused, although the kernel knows some more.
func Check(prog []Insn) error {
	if len(prog) == 0 || len(prog) > maxInsns {
		return fmt.Errorf("checking filter: %d instructions, the kernel takes 1 to %d", len(prog), maxInsns)
	}
	return checkShape(prog)
}

// checkShape is Check without the limit on length.
func checkShape(prog []Insn) error {
	for i, in := range prog {
		left := uint64(len(prog) - i - 1)
		bad := false
		switch in.Code {
		case opLoad:
			bad = in.K%4 != 0 || in.K >= dataSize || left == 0
		case opAnd:
			bad = left == 0
		case opJump:
			bad = uint64(in.K) >= left
		case opJeq, opJgt, opJge, opJset:
			bad = uint64(in.Jt) >= left || uint64(in.Jf) >= left
		case opRet:
		default:
			return fmt.Errorf("checking filter: instruction %d has unknown code %#x", i, in.Code)
		}
		if bad {
			return fmt.Errorf("checking filter: instruction %d (code %#x) leaves the program or the data", i, in.Code)
		}
	}
	if prog[len(prog)-1].Code != opRet {
		return errors.New("checking filter: last instruction does not return")
	}
	return nil
}

package seccompbpf

import (
	"encoding/binary"
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

// Eval runs a program over one call as the kernel would, and counts the instructions executed.
func Eval(prog []Insn, d Data) (Action, int, error) {
	if err := Check(prog); err != nil {
		return 0, 0, err
	}
	a, steps := run(prog, &d)
	return a, steps, nil
}

// run trusts that prog has passed Check.
func run(prog []Insn, d *Data) (Action, int) {
	var raw [dataSize]byte
	binary.LittleEndian.PutUint32(raw[offNr:], uint32(d.Nr))
	binary.LittleEndian.PutUint32(raw[offArch:], d.Arch)
	binary.LittleEndian.PutUint64(raw[8:], d.IP)
	for i, v := range d.Args {
		binary.LittleEndian.PutUint64(raw[offArgs+8*i:], v)
	}
	var acc uint32
	for pc, steps := 0, 1; ; pc, steps = pc+1, steps+1 {
		in := &prog[pc]
		switch in.Code {
		case opLoad:
			acc = binary.LittleEndian.Uint32(raw[in.K:])
		case opAnd:
			acc &= in.K
		case opJump:
			pc += int(in.K)
		case opRet:
			return Action(in.K), steps
		default:
			if in.taken(acc) {
				pc += int(in.Jt)
			} else {
				pc += int(in.Jf)
			}
		}
	}
}

func (in *Insn) taken(acc uint32) bool {
	switch in.Code {
	case opJeq:
		return acc == in.K
	case opJgt:
		return acc > in.K
	case opJge:
		return acc >= in.K
	}
	return acc&in.K != 0
}

// AlwaysAllows tells whether the kernel's per-number allow cache (5.11+, seccomp_is_const_allow) will hold the number,
// so that the program is not run for it at all: it must reach Allow without loading anything but number and architecture.
func AlwaysAllows(prog []Insn, arch Arch, nr int32) bool {
	if Check(prog) != nil {
		return false
	}
	var acc uint32
	for pc := 0; ; pc++ {
		in := &prog[pc]
		switch in.Code {
		case opLoad:
			switch in.K {
			case offNr:
				acc = uint32(nr)
			case offArch:
				acc = uint32(arch)
			default:
				return false
			}
		case opAnd:
			acc &= in.K
		case opJump:
			pc += int(in.K)
		case opRet:
			return Action(in.K) == Allow
		default:
			if in.taken(acc) {
				pc += int(in.Jt)
			} else {
				pc += int(in.Jf)
			}
		}
	}
}

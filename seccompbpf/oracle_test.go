package seccompbpf

import "encoding/binary"

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
// so that the program is not run for it at all: it must reach Allow without loading anything but number and
// architecture.
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

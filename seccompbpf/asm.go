package seccompbpf

import "slices"

// label is a place that a jump can go to: an instruction that exists, or "return this action", for which an
// instruction is made or reused where one is in reach.
type label struct {
	pos int // instructions from the end of the program
	act Action
	ret bool
}

func returns(a Action) label { return label{act: a, ret: true} }

// asm writes a program from its end to its start: jumps of classic BPF only go forward, so every target is known when
// the jump is written, and no patching is needed.
type asm struct {
	rev  []Insn // last instruction first
	rets []label
}

// reach is below the 255 instructions that a conditional jump can skip: making one target near can push the other
// one away by one.
const reach = 250

func (a *asm) emit(in Insn) label {
	a.rev = append(a.rev, in)
	return label{pos: len(a.rev)}
}

// near returns a place in reach of the next conditional jump from which execution gets to l.
func (a *asm) near(l label) label {
	if !l.ret {
		if len(a.rev)-l.pos < reach {
			return l
		}
		return a.emit(Insn{Code: opJump, K: uint32(len(a.rev) - l.pos)})
	}
	for i := range a.rets {
		if r := &a.rets[i]; r.act == l.act {
			if len(a.rev)-r.pos >= reach {
				r.pos = a.emit(Insn{Code: opRet, K: uint32(l.act)}).pos
			}
			return label{pos: r.pos}
		}
	}
	n := a.emit(Insn{Code: opRet, K: uint32(l.act)})
	a.rets = append(a.rets, label{pos: n.pos, act: l.act, ret: true})
	return n
}

// jump writes a conditional jump to t or f.
func (a *asm) jump(code uint16, k uint32, t, f label) label {
	if t == f {
		return t
	}
	t, f = a.near(t), a.near(f)
	n := len(a.rev)
	return a.emit(Insn{Code: code, Jt: uint8(n - t.pos), Jf: uint8(n - f.pos), K: k})
}

// then writes an instruction that is followed by what is at next.
func (a *asm) then(in Insn, next label) label {
	if next.ret {
		a.emit(Insn{Code: opRet, K: uint32(next.act)})
	} else if next.pos != len(a.rev) {
		a.emit(Insn{Code: opJump, K: uint32(len(a.rev) - next.pos)})
	}
	return a.emit(in)
}

func (a *asm) load(off uint32, next label) label {
	return a.then(Insn{Code: opLoad, K: off}, next)
}

// program returns the instructions in the order the kernel wants them; start must be the last label made.
func (a *asm) program(start label) []Insn {
	if start.ret || start.pos != len(a.rev) {
		panic("BUG(sbx): filter does not start at its first instruction")
	}
	slices.Reverse(a.rev)
	return a.rev
}

// span is a half-open range of accumulator values that begins at from and ends where the next span begins.
type span struct {
	from   uint32
	weight uint64 // how often values of the range are met, relative to other spans
	leaf   int
}

// tree writes a search over spans (the first begins at 0) and returns where it starts. The split halves the weight, not
// the count, so frequent values sit near the root. leaf is asked once per span, right to left.
func (a *asm) tree(s []span, leaf func(int) label) label {
	if len(s) == 1 {
		return leaf(s[0].leaf)
	}
	var total, left uint64
	for i := range s {
		total += s[i].weight
	}
	cut, best := 1, ^uint64(0)
	for i := 1; i < len(s); i++ {
		left += s[i-1].weight
		if d := max(left, total-left); d < best {
			cut, best = i, d
		}
	}
	right := a.tree(s[cut:], leaf)
	return a.jump(opJge, s[cut].from, right, a.tree(s[:cut], leaf))
}

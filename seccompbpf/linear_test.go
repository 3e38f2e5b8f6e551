package seccompbpf

import "fmt"

// CompileLinear writes a policy as one comparison per number and one per condition, in order. It shares no code with
// Compile beyond the rule list, so that tests can hold one against the other; nobody loads it, and it may be longer
// than the kernel takes.
func CompileLinear(p Policy) ([]Insn, error) {
	if err := p.check(); err != nil {
		return nil, err
	}
	var prog []Insn
	for _, q := range append([]Policy{p}, p.Others...) {
		if _, err := q.entries(); err != nil {
			return nil, err
		}
		body := linearBody(&q)
		prog = append(prog, Insn{Code: opLoad, K: offArch}, Insn{Code: opJeq, Jt: 1, K: uint32(q.Arch)},
			Insn{Code: opJump, K: uint32(len(body))})
		prog = append(prog, body...)
	}
	prog = append(prog, Insn{Code: opRet, K: uint32(KillProcess)})
	if err := checkShape(prog); err != nil {
		return nil, fmt.Errorf("compiling linear filter for %s: %w", p.Arch, err)
	}
	return prog, nil
}

func linearBody(p *Policy) []Insn {
	prog := []Insn{
		{Code: opLoad, K: offNr},
		{Code: opJge, K: x32Bit, Jf: 1},
		{Code: opRet, K: uint32(Errno(ENOSYS))},
	}
	names, order, _ := table(p.Arch)
	for _, o := range order {
		var block []Insn
		for i := range p.Rules {
			if p.Rules[i].names(names[o].name) {
				block = append(block, linearRule(&p.Rules[i])...)
				if len(p.Rules[i].Conds) == 0 {
					break
				}
			}
		}
		if block == nil {
			continue
		}
		block = append(block, Insn{Code: opRet, K: uint32(p.Default)})
		prog = append(prog, Insn{Code: opJeq, Jt: 1, K: names[o].nr}, Insn{Code: opJump, K: uint32(len(block))})
		prog = append(prog, block...)
	}
	return append(prog, Insn{Code: opRet, K: uint32(p.Default)})
}

// linearRule returns the action when all conditions hold and otherwise falls out at its end.
func linearRule(r *Rule) []Insn {
	tail := []Insn{{Code: opRet, K: uint32(r.Action)}}
	for i := len(r.Conds) - 1; i >= 0; i-- {
		tail = append(linearCond(&r.Conds[i], len(tail)), tail...)
	}
	return tail
}

// Jump distances that stand for an answer until the length of the condition is known.
const (
	toYes = ^uint32(0) - 1
	toNo  = ^uint32(0)
)

// linearCond falls out at its end when the condition holds and else skips the following tail.
func linearCond(c *Cond, tail int) []Insn {
	yes, no := toYes, toNo
	if c.Op == Ne || c.Op == NotIn {
		yes, no = no, yes
	}
	values, mask := c.List, ^uint64(0)
	if c.Mask != 0 && c.Op != Eq && c.Op != Ne {
		mask = c.Mask
	}
	switch c.Op {
	case Eq, Ne:
		values = []uint64{c.Value}
	case MaskedEq:
		values = []uint64{c.Value}
	case AnyBits:
		// "no bit is set" is a masked comparison with zero, turned round.
		values, yes, no = []uint64{0}, no, yes
	}
	var code []Insn
	for _, v := range values {
		code = append(code, linearEqual(c, v, mask, yes)...)
	}
	code = append(code, Insn{Code: opJump, K: no})
	for i := range code {
		left := uint32(len(code) - i - 1)
		switch {
		case code[i].Code != opJump:
		case code[i].K == toYes:
			code[i].K = left
		case code[i].K == toNo:
			code[i].K = left + uint32(tail)
		}
	}
	return code
}

// linearEqual jumps to yes when the argument is v under mask, and falls out at its end when not.
func linearEqual(c *Cond, v, mask uint64, yes uint32) []Insn {
	code := []Insn{{Code: opJump, K: yes}}
	for half := uint32(0); half < 2; half++ {
		if half == 1 && !c.Wide {
			break
		}
		sh := 32 * half
		code = append([]Insn{
			{Code: opLoad, K: offArgs + 8*uint32(c.Arg) + 4*half},
			{Code: opAnd, K: uint32(mask >> sh)},
			{Code: opJeq, K: uint32(v >> sh), Jf: uint8(len(code))},
		}, code...)
	}
	return code
}

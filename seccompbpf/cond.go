package seccompbpf

import (
	"fmt"
	"slices"
)

// nothing says that the accumulator holds no argument word.
const nothing = ^uint32(0)

func (c *Cond) low() uint32  { return offArgs + 8*uint32(c.Arg) }
func (c *Cond) high() uint32 { return c.low() + 4 }

// keeps tells whether the argument's low word is still in the accumulator after the test.
func (c *Cond) keeps() bool {
	return !c.Wide && (c.Mask == 0 || c.Op == AnyBits || c.Op == MaskedEq && c.Value == 0)
}

// chain writes rules in order and returns where the first test is. otherwise is reached when no rule holds.
func (a *asm) chain(rules []*Rule, otherwise Action) label {
	rules = joined(rules)
	next := returns(otherwise)
	for i := len(rules) - 1; i >= 0; i-- {
		have := nothing
		if i > 0 {
			have = held(rules[i-1].Conds)
		}
		next = a.all(rules[i].Conds, have, returns(rules[i].Action), next)
	}
	return next
}

// joined makes one list search out of neighbouring rules that look for the same word in different lists and agree on
// the action. Rules are written apart because their reasons differ.
func joined(rules []*Rule) []*Rule {
	var out []*Rule
	for _, r := range rules {
		if len(out) > 0 {
			if last := out[len(out)-1]; last.joins(r) {
				c := last.Conds[0]
				c.List = slices.Concat(c.List, r.Conds[0].List)
				out[len(out)-1] = &Rule{Conds: []Cond{c}, Action: r.Action}
				continue
			}
		}
		out = append(out, r)
	}
	return out
}

func (r *Rule) joins(o *Rule) bool {
	if len(r.Conds) != 1 || len(o.Conds) != 1 || r.Action != o.Action {
		return false
	}
	a, b := &r.Conds[0], &o.Conds[0]
	return a.Op == In && b.Op == In && a.Arg == b.Arg && a.Wide == b.Wide && a.Mask == b.Mask
}

// held returns the word that is in the accumulator wherever the conditions are left by failing, or nothing.
func held(conds []Cond) uint32 {
	if len(conds) == 0 {
		return nothing
	}
	for i := range conds {
		if !conds[i].keeps() || conds[i].Arg != conds[0].Arg {
			return nothing
		}
	}
	return conds[0].low()
}

// all writes conditions that must all hold; have is the argument word in the accumulator before the first.
func (a *asm) all(conds []Cond, have uint32, yes, no label) label {
	for i := len(conds) - 1; i >= 0; i-- {
		before := have
		if i > 0 {
			before = held(conds[i-1 : i])
		}
		yes = a.cond(&conds[i], before, yes, no)
	}
	return yes
}

func (a *asm) cond(c *Cond, have uint32, yes, no label) label {
	op := c.Op
	if op == Ne || op == NotIn {
		yes, no = no, yes
	}
	if c.Wide {
		return a.wide(c, yes, no)
	}
	start := a.word(c, uint32(c.Value), uint32(c.Mask), yes, no)
	if have == c.low() {
		return start
	}
	return a.load(c.low(), start)
}

// word tests the accumulator; negated forms have been turned round by the caller.
func (a *asm) word(c *Cond, value, mask uint32, yes, no label) label {
	switch c.Op {
	case Eq, Ne:
		return a.jump(opJeq, value, yes, no)
	case AnyBits:
		return a.jump(opJset, mask, yes, no)
	case MaskedEq:
		if value == 0 {
			return a.jump(opJset, mask, no, yes)
		}
		return a.then(Insn{Code: opAnd, K: mask}, a.jump(opJeq, value, yes, no))
	}
	if mask != 0 {
		return a.then(Insn{Code: opAnd, K: mask}, a.member(c.List, yes, no))
	}
	return a.member(c.List, yes, no)
}

// member searches a list of words; runs of neighbours become one range.
func (a *asm) member(list []uint64, yes, no label) label {
	vals := slices.Clone(list)
	slices.Sort(vals)
	vals = slices.Compact(vals)
	s := make([]span, 0, 2*len(vals)+1)
	if vals[0] != 0 {
		s = append(s, span{weight: 1})
	}
	for i, v := range vals {
		if i == 0 || vals[i-1]+1 != v {
			s = append(s, span{from: uint32(v), weight: 1, leaf: 1})
		}
		if v != 1<<32-1 && (i == len(vals)-1 || vals[i+1] != v+1) {
			s = append(s, span{from: uint32(v + 1), weight: 1})
		}
	}
	return a.tree(s, func(leaf int) label {
		if leaf == 1 {
			return yes
		}
		return no
	})
}

// wide tests both halves of an argument; negated forms have been turned round by the caller.
func (a *asm) wide(c *Cond, yes, no label) label {
	hi, lo := func(v uint64) uint32 { return uint32(v >> 32) }, func(v uint64) uint32 { return uint32(v) }
	switch c.Op {
	case AnyBits:
		low := a.load(c.low(), a.word(c, 0, lo(c.Mask), yes, no))
		return a.load(c.high(), a.word(c, 0, hi(c.Mask), yes, low))
	case Eq, Ne, MaskedEq:
		low := a.load(c.low(), a.word(c, lo(c.Value), lo(c.Mask), yes, no))
		return a.load(c.high(), a.word(c, hi(c.Value), hi(c.Mask), low, no))
	}
	next := no
	for _, v := range c.List {
		low := a.load(c.low(), a.jump(opJeq, lo(v), yes, next))
		next = a.load(c.high(), a.jump(opJeq, hi(v), low, next))
	}
	return next
}

// check refuses conditions that could never hold or always would: each is a slip of whoever wrote the rule.
func (c *Cond) check() error {
	if c.Arg > 5 {
		return fmt.Errorf("argument %d does not exist, use 0 to 5", c.Arg)
	}
	max := uint64(1)<<32 - 1
	if c.Wide {
		max = 1<<64 - 1
	}
	if c.Value > max || c.Mask > max {
		return fmt.Errorf("value %#x or mask %#x needs Wide", c.Value, c.Mask)
	}
	for _, v := range c.List {
		if v > max {
			return fmt.Errorf("list value %#x needs Wide", v)
		}
	}
	switch c.Op {
	case Eq, Ne:
		return nil
	case MaskedEq:
		if c.Value&^c.Mask != 0 {
			return fmt.Errorf("value %#x has bits outside mask %#x", c.Value, c.Mask)
		}
	case AnyBits:
		if c.Mask == 0 {
			return fmt.Errorf("empty mask")
		}
	case In, NotIn:
		if len(c.List) == 0 {
			return fmt.Errorf("empty list")
		}
		if c.Mask != 0 && c.Wide {
			return fmt.Errorf("a list of masked values is of low words only")
		}
		for _, v := range c.List {
			if c.Mask != 0 && v&^c.Mask != 0 {
				return fmt.Errorf("list value %#x has bits outside mask %#x", v, c.Mask)
			}
		}
	default:
		return fmt.Errorf("unknown comparison %d", c.Op)
	}
	return nil
}

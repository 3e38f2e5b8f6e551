package seccompbpf

import "fmt"

// Decide gives the verdict of a policy without compiling it, and the rule it came from (nil for a default). It is the
// definition that both compilers are tested against.
func Decide(p Policy, d Data) (Action, *Rule) {
	if Arch(d.Arch) != p.Arch {
		for i := range p.Others {
			if Arch(d.Arch) == p.Others[i].Arch {
				return Decide(p.Others[i], d)
			}
		}
		return KillProcess, nil
	}
	if uint32(d.Nr) >= x32Bit {
		return Errno(ENOSYS), nil
	}
	name := Name(p.Arch, int(d.Nr))
	if name == "" {
		return p.Default, nil
	}
	for i := range p.Rules {
		r := &p.Rules[i]
		if r.names(name) && r.holds(&d) {
			return r.Action, r
		}
	}
	return p.Default, nil
}

func (r *Rule) names(name string) bool {
	for _, n := range r.Names {
		if n == name {
			return true
		}
	}
	return false
}

func (r *Rule) holds(d *Data) bool {
	for i := range r.Conds {
		if !r.Conds[i].holds(d.Args[r.Conds[i].Arg]) {
			return false
		}
	}
	return true
}

func (c *Cond) holds(v uint64) bool {
	if !c.Wide {
		v = uint64(uint32(v))
	}
	switch c.Op {
	case Eq:
		return v == c.Value
	case Ne:
		return v != c.Value
	case MaskedEq:
		return v&c.Mask == c.Value
	case AnyBits:
		return v&c.Mask != 0
	}
	for _, w := range c.List {
		if v == w {
			return c.Op == In
		}
	}
	return c.Op == NotIn
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
	default:
		return fmt.Errorf("unknown comparison %d", c.Op)
	}
	return nil
}

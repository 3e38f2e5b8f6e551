package seccompbpf

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
	if c.Mask != 0 {
		v &= c.Mask
	}
	for _, w := range c.List {
		if v == w {
			return c.Op == In
		}
	}
	return c.Op == NotIn
}

package seccompbpf

import (
	"fmt"
	"strconv"
	"strings"
)

// Text prints a policy for people: one paragraph per rule, in the order in which rules are tried.
func Text(p Policy) string {
	var b strings.Builder
	text(&b, &p)
	for i := range p.Others {
		b.WriteString("\n")
		text(&b, &p.Others[i])
	}
	fmt.Fprintf(&b, "\nother architectures: %s\n", KillProcess)
	return b.String()
}

func text(b *strings.Builder, p *Policy) {
	fmt.Fprintf(b, "architecture %s; the first rule that holds decides; not listed: %s\n", p.Arch, p.Default)
	for i := range p.Rules {
		r := &p.Rules[i]
		var names []string
		for _, n := range r.Names {
			if _, ok := Number(p.Arch, n); ok {
				names = append(names, n)
			}
		}
		if len(names) == 0 {
			continue
		}
		fmt.Fprintf(b, "\n%s  # %s\n", r.Action, r.Why)
		for _, c := range r.Conds {
			fmt.Fprintf(b, "    if %s\n", c)
		}
		wrap(b, names, 110)
	}
}

func wrap(b *strings.Builder, words []string, width int) {
	col := 0
	for _, w := range words {
		if col+len(w) > width {
			b.WriteString("\n")
			col = 0
		}
		if col == 0 {
			b.WriteString("   ")
		}
		b.WriteString(" " + w)
		col += len(w) + 1
	}
	b.WriteString("\n")
}

func (c Cond) String() string {
	arg := fmt.Sprintf("arg%d", c.Arg)
	if c.Wide {
		arg += ".64"
	}
	switch c.Op {
	case Eq:
		return fmt.Sprintf("%s == %#x", arg, c.Value)
	case Ne:
		return fmt.Sprintf("%s != %#x", arg, c.Value)
	case MaskedEq:
		return fmt.Sprintf("%s & %#x == %#x", arg, c.Mask, c.Value)
	case AnyBits:
		return fmt.Sprintf("%s & %#x != 0", arg, c.Mask)
	}
	if c.Mask != 0 {
		arg += fmt.Sprintf(" & %#x", c.Mask)
	}
	word := "in"
	if c.Op == NotIn {
		word = "not in"
	}
	list := make([]string, len(c.List))
	for i, v := range c.List {
		list[i] = fmt.Sprintf("%#x", v)
	}
	return fmt.Sprintf("%s %s %s", arg, word, strings.Join(list, " "))
}

// Dump prints a program, one instruction per line, with absolute jump targets.
func Dump(prog []Insn) string {
	var b strings.Builder
	for i, in := range prog {
		fmt.Fprintf(&b, "%4d  %s\n", i, in.text(i))
	}
	return b.String()
}

func (in Insn) text(pc int) string {
	cmp := ""
	switch in.Code {
	case opLoad:
		return "load " + field(in.K)
	case opAnd:
		return fmt.Sprintf("and %#x", in.K)
	case opJump:
		return fmt.Sprintf("jump %d", pc+1+int(in.K))
	case opRet:
		return "return " + Action(in.K).String()
	case opJeq:
		cmp = "=="
	case opJgt:
		cmp = ">"
	case opJge:
		cmp = ">="
	case opJset:
		cmp = "&"
	default:
		return fmt.Sprintf("code %#x %d %d %#x", in.Code, in.Jt, in.Jf, in.K)
	}
	return fmt.Sprintf("if %s %#x then %d else %d", cmp, in.K, pc+1+int(in.Jt), pc+1+int(in.Jf))
}

func field(off uint32) string {
	switch {
	case off == offNr:
		return "nr"
	case off == offArch:
		return "arch"
	case off < offArgs:
		return fmt.Sprintf("ip+%d", off-8)
	}
	half := "low"
	if off%8 == 4 {
		half = "high"
	}
	return fmt.Sprintf("arg%d.%s", (off-offArgs)/8, half)
}

// IsErrno returns the errno of an Errno action.
func (a Action) IsErrno() (uint16, bool) {
	return uint16(a & retDataMask), a&^retDataMask == retErrno
}

func (a Action) String() string {
	switch a {
	case Allow:
		return "allow"
	case Notify:
		return "notify"
	case Log:
		return "log"
	case KillProcess:
		return "kill"
	}
	n, ok := a.IsErrno()
	if !ok {
		return "action 0x" + strconv.FormatUint(uint64(a), 16)
	}
	switch n {
	case EPERM:
		return "EPERM"
	case ENOTTY:
		return "ENOTTY"
	case ENOSYS:
		return "ENOSYS"
	case ENOPROTOOPT:
		return "ENOPROTOOPT"
	case EPROTONOSUPPORT:
		return "EPROTONOSUPPORT"
	case EAFNOSUPPORT:
		return "EAFNOSUPPORT"
	}
	return "errno " + strconv.Itoa(int(n))
}

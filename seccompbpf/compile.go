package seccompbpf

import (
	"fmt"
	"slices"
	"strings"
)

// Compile writes a policy as a balanced search over number ranges; neighbours with the same verdict share a range.
func Compile(p Policy) ([]Insn, error) {
	if err := p.check(); err != nil {
		return nil, err
	}
	a := &asm{rev: make([]Insn, 0, 1024), rets: make([]label, 0, 8)}
	next := returns(KillProcess)
	for i := len(p.Others) - 1; i >= 0; i-- {
		body, err := a.dispatch(&p.Others[i])
		if err != nil {
			return nil, err
		}
		next = a.jump(opJeq, uint32(p.Others[i].Arch), body, next)
	}
	body, err := a.dispatch(&p)
	if err != nil {
		return nil, err
	}
	start := a.load(offArch, a.jump(opJeq, uint32(p.Arch), body, next))
	prog := a.program(start)
	if err := Check(prog); err != nil {
		return nil, fmt.Errorf("compiling filter for %s: %w", p.Arch, err)
	}
	return prog, nil
}

// entry says that a rule names a number: the number above, the rule below, so that plain order is the order wanted.
type entry uint64

func (e entry) nr() uint32   { return uint32(e >> 32) }
func (e entry) rule() uint32 { return uint32(e) }

// entries lists which rules name which numbers, by number and then by rule order. A name that no architecture has is an
// error: it would leave a call undecided.
func (p *Policy) entries() ([]entry, error) {
	list := make([]entry, 0, 512)
	for i := range p.Rules {
		for _, n := range p.Rules[i].Names {
			if nr, ok := Number(p.Arch, n); ok {
				list = append(list, entry(nr)<<32|entry(i))
			} else if !known(n) {
				return nil, fmt.Errorf("compiling rule %d: no architecture has a system call %q, correct the name", i, n)
			}
		}
	}
	slices.Sort(list)
	return list, nil
}

// verdicts returns the rules that matter for the numbers of list, all equal: up to the first without conditions.
func (p *Policy) verdicts(list []entry) []*Rule {
	rules := make([]*Rule, 0, len(list))
	for _, e := range list {
		r := &p.Rules[e.rule()]
		rules = append(rules, r)
		if len(r.Conds) == 0 {
			break
		}
	}
	return rules
}

// spans cuts the numbers of one architecture into ranges with one rule list each; nil stands for the default.
func (p *Policy) spans(list []entry) ([]span, [][]*Rule) {
	hot := weights(p.Arch)
	spans := make([]span, 1, 256)
	leaves := make([][]*Rule, 1, 128)
	add := func(from uint32, weight uint64, rules []*Rule) {
		last := &spans[len(spans)-1]
		switch {
		case last.from == from:
			last.leaf = len(leaves)
			last.weight = weight
		case p.same(leaves[last.leaf], rules):
			last.weight += weight
			return
		default:
			spans = append(spans, span{from, weight, len(leaves)})
		}
		leaves = append(leaves, rules)
	}
	spans[0].weight = 1
	end := uint32(0)
	for len(list) > 0 {
		n := 1
		for n < len(list) && list[n].nr() == list[0].nr() {
			n++
		}
		nr := list[0].nr()
		if nr != end {
			add(end, 1, nil)
		}
		w := uint64(1)
		if nr < uint32(len(hot)) {
			w += uint64(hot[nr])
		}
		add(nr, w, p.verdicts(list[:n]))
		end, list = nr+1, list[n:]
	}
	add(end, 1, nil)
	add(x32Bit, 1, []*Rule{{Action: Errno(ENOSYS)}})
	return spans, leaves
}

// same tells whether two rule lists give the same verdict for every call.
func (p *Policy) same(a, b []*Rule) bool {
	fixed := func(r []*Rule) (Action, bool) {
		if len(r) == 0 {
			return p.Default, true
		}
		return r[0].Action, len(r[0].Conds) == 0
	}
	x, xok := fixed(a)
	y, yok := fixed(b)
	if xok || yok {
		return xok && yok && x == y
	}
	return slices.Equal(a, b)
}

// dispatch writes the body for one architecture and returns where it starts.
func (a *asm) dispatch(p *Policy) (label, error) {
	list, err := p.entries()
	if err != nil {
		return label{}, err
	}
	spans, leaves := p.spans(list)
	return a.load(offNr, a.tree(spans, func(leaf int) label {
		return a.chain(leaves[leaf], p.Default)
	})), nil
}

// check finds slips in the rules before they become a filter that is silently weaker.
func (p *Policy) check() error {
	for i := range p.Rules {
		r := &p.Rules[i]
		for j := range r.Conds {
			if err := r.Conds[j].check(); err != nil {
				return fmt.Errorf("compiling rule %d (%s), condition %d: %w", i, r.Why, j, err)
			}
		}
	}
	if names, _, _ := table(p.Arch); names == nil {
		return fmt.Errorf("compiling filter: no table of system calls for %s, use amd64, arm64, i386 or arm", p.Arch)
	}
	seen := []Arch{p.Arch}
	for i := range p.Others {
		o := &p.Others[i]
		if len(o.Others) > 0 || slices.Contains(seen, o.Arch) {
			return fmt.Errorf("compiling filter: architecture %s is listed twice or nested", o.Arch)
		}
		if err := o.check(); err != nil {
			return err
		}
		seen = append(seen, o.Arch)
	}
	return nil
}

// weights is how often calls are met, by number, as rough powers of two. Calls that carry an argument test come first:
// since 5.11 the kernel's allow cache answers for the others without running the program. A linear prefix for the first
// few was tried and is not measurable: what costs is running a program at all (some 30 ns), not its length.
func weights(a Arch) (w [512]uint8) {
	for _, c := range [...]struct {
		weight uint8
		names  string
	}{
		{255, "openat ioctl"},
		{128, "read write futex newfstatat"},
		{32, "mmap close epoll_pwait epoll_wait fstat stat lstat recvmsg sendmsg open clone prctl socket fchmodat"},
		{16, "lseek pread64 pwrite64 rt_sigaction rt_sigprocmask getppid madvise mprotect munmap poll ppoll access readlink"},
		{16, "readlinkat getdents64 fcntl brk recvfrom sendto statx"},
	} {
		for n := range strings.SplitSeq(c.names, " ") {
			if nr, ok := Number(a, n); ok && nr < len(w) {
				w[nr] = c.weight
			}
		}
	}
	return w
}

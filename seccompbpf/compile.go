package seccompbpf

import (
	"cmp"
	"fmt"
	"slices"
)

// Compile writes a policy as a balanced search over number ranges; neighbours with the same verdict share a range.
func Compile(p Policy) ([]Insn, error) {
	if err := p.check(); err != nil {
		return nil, err
	}
	a := &asm{rev: make([]Insn, 0, 1024)}
	next := returns(KillProcess)
	for i := len(p.Others) - 1; i >= 0; i-- {
		next = a.jump(opJeq, uint32(p.Others[i].Arch), a.dispatch(&p.Others[i]), next)
	}
	start := a.load(offArch, a.jump(opJeq, uint32(p.Arch), a.dispatch(&p), next))
	prog := a.program(start)
	if err := Check(prog); err != nil {
		return nil, fmt.Errorf("compiling filter for %s: %w", p.Arch, err)
	}
	return prog, nil
}

// entry says that a rule names a number.
type entry struct{ nr, rule uint32 }

// entries lists which rules name which numbers, by number and then by rule order.
func (p *Policy) entries() []entry {
	list := make([]entry, 0, 512)
	for i := range p.Rules {
		for _, n := range p.Rules[i].Names {
			if nr, ok := Number(p.Arch, n); ok {
				list = append(list, entry{uint32(nr), uint32(i)})
			}
		}
	}
	slices.SortFunc(list, func(a, b entry) int {
		if c := cmp.Compare(a.nr, b.nr); c != 0 {
			return c
		}
		return cmp.Compare(a.rule, b.rule)
	})
	return list
}

// verdicts returns the rules that matter for the numbers of list, all equal: up to the first without conditions.
func (p *Policy) verdicts(list []entry) []*Rule {
	var rules []*Rule
	for _, e := range list {
		r := &p.Rules[e.rule]
		rules = append(rules, r)
		if len(r.Conds) == 0 {
			break
		}
	}
	return rules
}

// spans cuts the numbers of one architecture into ranges with one rule list each; nil stands for the default.
func (p *Policy) spans() ([]span, [][]*Rule) {
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
	for list := p.entries(); len(list) > 0; {
		n := 1
		for n < len(list) && list[n].nr == list[0].nr {
			n++
		}
		nr := list[0].nr
		if nr != end {
			add(end, 1, nil)
		}
		add(nr, weight(p.Arch, nr), p.verdicts(list[:n]))
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
func (a *asm) dispatch(p *Policy) label {
	spans, leaves := p.spans()
	return a.load(offNr, a.tree(spans, func(leaf int) label {
		return a.chain(leaves[leaf], p.Default)
	}))
}

// check finds slips in the rules before they become a filter that is silently weaker.
func (p *Policy) check() error {
	for i := range p.Rules {
		r := &p.Rules[i]
		for _, n := range r.Names {
			if _, ok := Number(p.Arch, n); !ok && !known(n) {
				return fmt.Errorf("compiling rule %d: no architecture has a system call %q, correct the name", i, n)
			}
		}
		for j := range r.Conds {
			if err := r.Conds[j].check(); err != nil {
				return fmt.Errorf("compiling rule %d (%s), condition %d: %w", i, r.Why, j, err)
			}
		}
	}
	if names, _ := table(p.Arch); names == nil {
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

// weight is how often a call is met, as a rough power of two. Calls that carry an argument test come first:
// since 5.11 the kernel's allow cache answers for the others without running the program.
func weight(a Arch, nr uint32) uint64 {
	switch Name(a, int(nr)) {
	case "openat", "ioctl":
		return 256
	case "read", "write", "futex", "newfstatat":
		return 128
	case "mmap", "close", "epoll_pwait", "epoll_wait", "fstat", "stat", "lstat", "recvmsg", "sendmsg", "open", "chmod", "fchmod", "fchmodat", "clone", "prctl", "socket":
		return 32
	case "lseek", "pread64", "pwrite64", "rt_sigaction", "rt_sigprocmask", "getpid", "getppid", "madvise", "mprotect", "munmap",
		"poll", "ppoll", "access", "readlink", "readlinkat", "getdents64", "fcntl", "brk", "recvfrom", "sendto", "statx", "nanosleep":
		return 16
	}
	return 1
}

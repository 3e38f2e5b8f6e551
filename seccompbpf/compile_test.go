package seccompbpf

import (
	"math/rand/v2"
	"strings"
	"testing"
)

// differ compares definition, both compilers and the kernel-like evaluation over edge values.
func differ(t *testing.T, p Policy, rng *rand.Rand, rounds int) {
	t.Helper()
	fast, err := Compile(p)
	if err != nil {
		t.Fatal(err)
	}
	plain, err := CompileLinear(p)
	if err != nil {
		t.Fatal(err)
	}
	edges := interesting(&p)
	value := func() uint64 {
		v := edges[rng.IntN(len(edges))]
		switch rng.IntN(6) {
		case 0:
			return v | rng.Uint64()<<32
		case 1:
			return v ^ 1<<rng.IntN(64)
		case 2:
			return rng.Uint64()
		}
		return v
	}
	one := func(d Data) {
		want, _ := Decide(p, d)
		a, _ := run(fast, &d)
		b, _ := run(plain, &d)
		if a != want || b != want {
			t.Fatalf("%s %+v: compiled %v, linear %v, by definition %v", Name(Arch(d.Arch), int(d.Nr)), d, a, b, want)
		}
	}
	for nr := int32(-3); nr < 700; nr++ {
		one(Data{Nr: nr, Arch: uint32(p.Arch), Args: [6]uint64{value(), value(), value(), value()}})
	}
	conditional := conditionalNumbers(&p)
	for range rounds {
		d := Data{Arch: uint32(p.Arch), Nr: int32(rng.IntN(500))}
		if len(conditional) > 0 && rng.IntN(2) == 0 {
			d.Nr = conditional[rng.IntN(len(conditional))]
		}
		switch rng.IntN(20) {
		case 0:
			d.Nr |= x32Bit
		case 1:
			d.Nr = int32(rng.Uint32())
		case 2:
			d.Arch = uint32(arches[rng.IntN(4)])
		case 3:
			d.Arch = rng.Uint32()
		}
		for i := range d.Args {
			d.Args[i] = value()
		}
		one(d)
	}
}

func conditionalNumbers(p *Policy) (list []int32) {
	for _, r := range p.Rules {
		for _, n := range r.Names {
			if nr, ok := Number(p.Arch, n); ok && len(r.Conds) > 0 {
				list = append(list, int32(nr))
			}
		}
	}
	return list
}

// interesting returns the values that conditions mention and their neighbours.
func interesting(p *Policy) []uint64 {
	list := []uint64{0, 1, 2, 3, 10, 16, 17, 1<<31 - 1, 1 << 31, 1<<32 - 1, 1 << 32, 1<<64 - 1, 0o4755, 0o2644, 0o101}
	for _, r := range p.Rules {
		for _, c := range r.Conds {
			for _, v := range append([]uint64{c.Value, c.Mask}, c.List...) {
				list = append(list, v, v-1, v+1)
			}
		}
	}
	return list
}

func TestCompilersAgreeOnDefault(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	list := allToggles()
	for _, a := range arches {
		for i := range 16 {
			differ(t, Default(a, list[(i*37)%len(list)]), rng, 1500)
		}
	}
}

// randomPolicy makes policies that no human would write.
func randomPolicy(rng *rand.Rand) Policy {
	acts := []Action{Allow, Errno(EPERM), Errno(ENOSYS), Notify, KillProcess, Log}
	act := func() Action { return acts[rng.IntN(len(acts))] }
	p := Policy{Arch: arches[rng.IntN(4)], Default: act()}
	names, _, _ := table(p.Arch)
	for range rng.IntN(80) {
		r := Rule{Action: act()}
		for range 1 + rng.IntN(8) {
			r.Names = append(r.Names, names[rng.IntN(min(len(names), 1+rng.IntN(len(names))))].name)
		}
		for range rng.IntN(4) {
			r.Conds = append(r.Conds, randomCond(rng))
		}
		p.Rules = append(p.Rules, r)
	}
	return p
}

func randomCond(rng *rand.Rand) Cond {
	c := Cond{Arg: uint8(rng.IntN(6)), Op: Op(rng.IntN(6)), Wide: rng.IntN(3) == 0}
	if rng.IntN(2) == 0 {
		c.Arg = 1
	}
	word := func() uint64 {
		v := rng.Uint64()
		if rng.IntN(2) == 0 {
			v = uint64(rng.IntN(5)) | uint64(rng.IntN(3))<<31
		}
		if rng.IntN(8) == 0 {
			v = 1<<64 - 1
		}
		if !c.Wide {
			v = uint64(uint32(v))
		}
		return v
	}
	c.Value, c.Mask = word(), word()|1
	if c.Op == MaskedEq {
		c.Value &= c.Mask
	}
	if c.Op >= In {
		n := 1 + rng.IntN(6)
		if rng.IntN(10) == 0 {
			n = 200
		}
		if c.Wide || rng.IntN(2) == 0 {
			c.Mask = 0
		}
		for range n {
			v := word()
			if c.Mask != 0 {
				v &= c.Mask
			}
			c.List = append(c.List, v)
		}
	}
	return c
}

func TestCompilersAgreeOnRandomPolicies(t *testing.T) {
	rng, tooLong := rand.New(rand.NewPCG(3, 4)), 0
	for range 150 {
		p := randomPolicy(rng)
		if _, err := Compile(p); err != nil {
			tooLong++
			continue
		}
		differ(t, p, rng, 300)
	}
	if tooLong > 75 {
		t.Errorf("%d of 150 policies outgrew the kernel's limit, make smaller ones", tooLong)
	}
}

func FuzzCompile(f *testing.F) {
	f.Add(uint64(1), uint64(2))
	f.Fuzz(func(t *testing.T, a, b uint64) {
		rng := rand.New(rand.NewPCG(a, b))
		p := randomPolicy(rng)
		if _, err := Compile(p); err == nil || !strings.Contains(err.Error(), "the kernel takes") {
			differ(t, p, rng, 50)
		}
	})
}

func TestCompileErrors(t *testing.T) {
	rule := func(c Cond) Policy {
		return Policy{Arch: AMD64, Rules: []Rule{{Names: []string{"ioctl"}, Conds: []Cond{c}, Why: "w"}}}
	}
	for want, p := range map[string]Policy{
		`no architecture has a system call "opnat", correct the name`: {Arch: AMD64,
			Rules: []Rule{{Names: []string{"opnat"}}}},
		"argument 6 does not exist, use 0 to 5":        rule(Cond{Arg: 6}),
		"value 0x100000000 or mask 0x0 needs Wide":     rule(Cond{Value: 1 << 32}),
		"list value 0x100000000 needs Wide":            rule(Cond{Op: In, List: []uint64{1 << 32}}),
		"value 0x2 has bits outside mask 0x1":          rule(Cond{Op: MaskedEq, Value: 2, Mask: 1}),
		"empty mask":                                   rule(Cond{Op: AnyBits}),
		"empty list":                                   rule(Cond{Op: NotIn}),
		"list value 0x3 has bits outside mask 0x2":     rule(Cond{Op: In, Mask: 2, List: []uint64{3}}),
		"masked values is of low words only":           rule(Cond{Op: In, Mask: 2, List: []uint64{2}, Wide: true}),
		"unknown comparison 77":                        rule(Cond{Op: 77}),
		"no table of system calls for arch 7":          {Arch: 7},
		"architecture amd64 is listed twice or nested": {Arch: AMD64, Others: []Policy{{Arch: AMD64}}},
	} {
		for _, compile := range []func(Policy) ([]Insn, error){Compile, CompileLinear} {
			if _, err := compile(p); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%v, want %q", err, want)
			}
		}
	}
}

func BenchmarkCompile(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Compile(Default(AMD64, Toggles{Debug: true})); err != nil {
			b.Fatal(err)
		}
	}
}
